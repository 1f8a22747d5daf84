{{/* A quantity such as 512Mi or 2Gi → bytes. */}}
{{- define "backtalk.bytes" -}}
{{- $number := regexFind "^[0-9]+" . | int64 }}
{{- $unit := get (dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776) (regexFind "[A-Za-z]+$" .) | default 1 | int64 }}
{{- mul $number $unit }}
{{- end }}
