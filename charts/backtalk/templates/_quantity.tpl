{{/* A quantity such as 512Mi, 2Gi, 2G or 1024 → bytes. */}}
{{- define "backtalk.bytes" -}}
{{- $text := toString . }}
{{- $units := dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 }}
{{- $unit := get $units (regexFind "[A-Za-z]+$" $text) | default 1 | int64 }}
{{- mulf (regexFind "^[0-9.]+" $text | float64) $unit | int64 }}
{{- end }}
