{{/* What a release asks of its nodes when it starts: the requests of every pod that stays, at its least number. */}}

{{/* A quantity of CPU such as 250m or 1.5 → thousandths. */}}
{{- define "backtalk.milli" -}}
{{- $text := toString . }}
{{- if hasSuffix "m" $text }}{{ trimSuffix "m" $text | int64 }}{{ else }}{{ mulf (float64 $text) 1000 | int64 }}{{ end }}
{{- end }}

{{/* (settings) → how many there are at the least. */}}
{{- define "backtalk.least" -}}
{{- if include "backtalk.scales" . }}{{ .autoscaling.min }}{{ else }}{{ ternary 1 .replicas (kindIs "invalid" .replicas) }}{{ end }}
{{- end }}

{{/* What stands in a pod, with how many there are: a list of (count, resources, gpu?). */}}
{{- define "backtalk.parts" -}}
{{- $values := .Values }}
{{- $parts := list }}
{{- range $name := list "gateway" "collector" "judge" }}
{{- $settings := index $values $name }}
{{- $parts = append $parts (dict "count" (include "backtalk.least" $settings | int) "resources" $settings.resources) }}
{{- end }}
{{- range $name := list "trainer" "publisher" }}{{ $parts = append $parts (dict "count" 1 "resources" (index $values $name).resources) }}{{ end }}
{{- range $name := list "commands" "nats" "valkey" }}
{{- if (index $values $name).enabled }}{{ $parts = append $parts (dict "count" 1 "resources" (index $values $name).resources) }}{{ end }}
{{- end }}
{{- range $name := append (include "backtalk.ownPools" . | fromYamlArray) "training" }}
{{- $pool := include "backtalk.pool" (dict "root" $ "name" $name) | fromYaml }}
{{- $count := ternary (int $values.pools.training.replicas) (include "backtalk.least" $pool | int) (eq $name "training") }}
{{- $parts = append $parts (dict "count" $count "resources" $pool.resources "gpu" $pool.gpu.count) }}
{{- if not (has $name (list "training" "judge")) }}{{ $parts = append $parts (dict "count" $count "resources" $values.loader.resources) }}{{ end }}
{{- end }}
{{- toYaml $parts }}
{{- end }}

{{/* → cpu (thousandths), memory (MiB) and gpus of all pods together. */}}
{{- define "backtalk.needs" -}}
{{- $cpu := 0 }}{{ $memory := 0 }}{{ $gpus := 0 }}
{{- range include "backtalk.parts" . | fromYamlArray }}
{{- $requests := .resources.requests | default .resources.limits | default dict }}
{{- $cpu = add $cpu (mul .count (include "backtalk.milli" ($requests.cpu | default 0) | int64)) }}
{{- $memory = add $memory (mul .count (include "backtalk.bytes" ($requests.memory | default 0) | int64)) }}
{{- $gpus = add $gpus (mul .count (int .gpu)) }}
{{- end }}
{{- dict "cpu" $cpu "memory" (div $memory 1048576) "gpus" $gpus | toYaml }}
{{- end }}
