{{/*
The parts that these values make, each with a figure that it always gives: what Prometheus has to find. By the labels that the
ServiceMonitor sets, so that a release says so of itself alone.
*/}}

{{- define "backtalk.missingParts" -}}
{{- $figures := dict
  "gateway" "backtalk_gateway_engines_ready"
  "collector" "backtalk_collector_sessions_open"
  "judge" "backtalk_judge_engines_known"
  "trainer" "backtalk_trainer_leader_active"
  "publisher" "backtalk_publisher_leading" }}
{{- $seconds := 600 }}
{{- $expected := dict }}
{{- range $part, $figure := $figures }}
{{- if not (include "backtalk.isSwitchedOff" (index $.Values $part)) }}{{ $_ := set $expected $part $figure }}{{ end }}
{{- end }}
{{- $_ := set $expected "training" "backtalk_training_busy_steps" }}
{{- range $name := include "backtalk.ownPools" . | fromYamlArray }}
{{- $pool := include "backtalk.pool" (dict "root" $ "name" $name) | fromYaml }}
{{- $seconds = max $seconds (add $pool.startSeconds 60 (ternary 1800 0 (and (not (empty $pool.model.hub)) (empty $pool.model.claim)))) }}
{{- if not (include "backtalk.isSwitchedOff" $pool) }}
{{- $figure := get (dict "builtin" "backtalk_engine_adapters" "vllm" "vllm:num_requests_running" "sglang" "sglang:num_running_reqs") $pool.engine }}
{{- $_ := set $expected (printf "engine-%s" $name) $figure }}
{{- if ne $name "judge" }}{{ $_ := set $expected "loader" "backtalk_loader_engine_ready" }}{{ end }}
{{- end }}
{{- end }}
{{- $asked := list }}
{{- range $job, $figure := $expected }}
{{- $asked = append $asked (printf "absent_over_time(%s{namespace=%q, release=%q, job=%q}[1d])" $figure $.Release.Namespace $.Release.Name $job) }}
{{- end }}
expr: {{ join "\n  or " $asked | quote }}
for: {{ printf "%ds" (int $seconds) }}
jobs: {{ keys $expected | sortAlpha | toJson }}
{{- end }}

{{/* (settings) → whether no replica is wanted. */}}
{{- define "backtalk.isSwitchedOff" -}}
{{- if and (not (include "backtalk.scales" .)) (eq (toString .replicas) "0") }}yes{{ end }}
{{- end }}
