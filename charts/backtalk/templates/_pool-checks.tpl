{{/* What a pool computes with: engines, GPUs and memory that do not go together. Each line names the value and what to do. */}}

{{/* (pool) → "yes" with GPUs that are counted, with one or a slice of one among the limits, or with a claim on a device. */}}
{{- define "backtalk.hasDevice" -}}
{{- $devices := list }}
{{- range $resource, $_ := .resources.limits | default dict }}{{ if regexMatch "^(nvidia[.]com|amd[.]com|gpu[.]intel[.]com)/" $resource }}{{ $devices = append $devices $resource }}{{ end }}{{ end }}
{{- if or (gt (int .gpu.count) 0) $devices .resources.claims }}yes{{ end }}
{{- end }}

{{/* (at, name, pool) */}}
{{- define "backtalk.checkHardware" -}}
{{- $count := int .pool.gpu.count }}
{{- $limits := .pool.resources.limits | default dict }}
{{- $claimed := include "backtalk.hasDevice" .pool }}
{{- if ne .name "training" }}
{{- if and (ne .pool.engine "builtin") (eq $count 0) (not $claimed) }}{{ fail (printf "%s.gpu.count: %s runs on a GPU; set gpu.count, or engine=builtin." .at .pool.engine) }}{{ end }}
{{- if and (eq .pool.engine "builtin") (gt $count 0) }}{{ fail (printf "%s.gpu.count: the built-in engine runs on the CPU and would hold a GPU for nothing; set 0, or engine=vllm." .at) }}{{ end }}
{{- if and (gt $count 1) (not (has $count (list 2 4 8 16))) (not (regexMatch "--(tensor-parallel-size|tp-size|pipeline-parallel-size|pp-size)" (join " " .pool.extraArgs))) }}{{ fail (printf "%s.gpu.count: %d GPUs divide few models' heads; set 2, 4, 8 or 16, or give the engine's own parallel size in extraArgs." .at $count) }}{{ end }}
{{- end }}
{{- include "backtalk.checkMemory" (dict "at" .at "name" .name "pool" .pool "limits" $limits "count" $count) }}
{{- end }}

{{/* (at, name, pool, limits, count): /dev/shm counts into the limit. A process that uses a GPU takes some memory of the host too. */}}
{{- define "backtalk.checkMemory" -}}
{{- with .limits.memory }}
{{- $left := sub (include "backtalk.bytes" . | int64) (include "backtalk.bytes" $.pool.shm | int64) }}
{{- $least := ternary 4 0 (and (ne $.name "training") (ne $.pool.engine "builtin")) }}
{{- if le $left 0 }}{{ fail (printf "%s.resources.limits.memory: %s is not more than shm (%s), which counts into it." $.at (toString .) $.pool.shm) }}{{ end }}
{{- if lt $left (mul $least 1073741824) }}{{ fail (printf "%s.resources.limits.memory: %s leaves less than 4Gi beside shm (%s), with which %s is killed while it reads a model; give it what the model needs." $.at (toString .) $.pool.shm $.pool.engine) }}{{ end }}
{{- end }}
{{- if and (eq .name "training") (ge (include "backtalk.bytes" .pool.cache.max | int64) (include "backtalk.bytes" .pool.cache.size | int64)) }}{{ fail (printf "%s.cache.max: must be less than cache.size, or a full volume comes before a full cache." .at) }}{{ end }}
{{- end }}

{{/* (at, pool): all pods must have the same weights, which only a commit says. */}}
{{- define "backtalk.checkRevision" -}}
{{- $model := .pool.model }}
{{- if and $model.hub (not $model.claim) (not $model.revision) }}{{ fail (printf "%s: model.revision: give the commit of %s, so that every pod fetches the same weights whenever it starts." .at $model.hub) }}{{ end }}
{{- end }}
