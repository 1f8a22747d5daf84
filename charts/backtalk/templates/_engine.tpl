{{/* The engine of a pool: its command, flags and environment. Swaps need most of the flags, so they are not the reader's. */}}

{{/* (root, name, pool, hasLoader) */}}
{{- define "backtalk.engineCommand" -}}
{{- $module := get (dict "vllm" "vllm.entrypoints.openai.api_server" "sglang" "sglang.launch_server") .pool.engine }}
{{- if $module }}
# SIGTERM is heard from the first line, and no list of processes shows a key.
command: [python3, -c, {{ .root.Files.Get "files/start_engine.py" | toJson }}, {{ $module }}]
{{- else }}
command: [python, -m, backtalk_worker.engine]
{{- end }}
{{- with include "backtalk.engineArguments" . | fromYamlArray }}
args:
  {{- range . }}
  - {{ . | toString | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "backtalk.engineArguments" -}}
{{- if eq .pool.engine "vllm" }}{{ include "backtalk.vllmArguments" . }}
{{- else if eq .pool.engine "sglang" }}{{ include "backtalk.sglangArguments" . }}{{ end }}
{{- with .pool.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "backtalk.vllmArguments" -}}
- {{ include "backtalk.modelPath" .pool | printf "--model=%s" | quote }}
- {{ printf "--served-model-name=%s" .pool.model.name | quote }}
- {{ include "backtalk.anyHost" .root | printf "--host=%s" | quote }}
- --port=30030
- --logprobs-mode=processed_logprobs
- --shutdown-timeout={{ .root.Values.gateway.answerSeconds }}
{{- if .hasLoader }}
{{- include "backtalk.vllmTools" .pool }}
- --enable-lora
- --max-loras={{ include "backtalk.adapterPlaces" (dict "root" .root "count" .pool.adapters.loaded) }}
- --max-cpu-loras={{ include "backtalk.adapterPlaces" (dict "root" .root "count" .pool.adapters.kept) }}
- --max-lora-rank={{ .pool.adapters.rankMax }}
{{- include "backtalk.targetModules" .pool }}
{{- end }}
{{- with int .pool.model.lengthMax }}
- --max-model-len={{ . }}
{{- end }}
{{- with .pool.model.dtype }}
- --dtype={{ . }}
{{- end }}
{{- if eq .pool.model.quantization "nf4" }}
- --quantization=bitsandbytes
{{- end }}
{{- if gt (int .pool.gpu.count) 1 }}
- --tensor-parallel-size={{ .pool.gpu.count }}
{{- end }}
{{- end }}

{{/* Without both, vLLM refuses each request that has tools. What the reader's own arguments say already is theirs. */}}
{{- define "backtalk.vllmTools" }}
{{- $own := join " " .extraArgs }}
{{- if .toolParser }}
{{- if not (contains "enable-auto-tool-choice" $own) }}
- --enable-auto-tool-choice
{{- end }}
{{- if not (contains "--tool-call-parser" $own) }}
- --tool-call-parser={{ .toolParser }}
{{- end }}
{{- end }}
{{- end }}

{{- define "backtalk.sglangArguments" -}}
- {{ include "backtalk.modelPath" .pool | printf "--model-path=%s" | quote }}
- {{ printf "--served-model-name=%s" .pool.model.name | quote }}
- {{ include "backtalk.anyHost" .root | printf "--host=%s" | quote }}
- --port=30030
- --enable-metrics
# At the level before it, the key is logged with all other arguments.
- --log-level=warning
# Without one, calls come as plain text.
- --tool-call-parser=auto
{{- if .hasLoader }}
- --enable-lora
# The base has a place among them.
- --max-loras-per-batch={{ include "backtalk.adapterPlaces" (dict "root" .root "count" .pool.adapters.loaded) | int | add1 }}
- --max-loaded-loras={{ include "backtalk.adapterPlaces" (dict "root" .root "count" .pool.adapters.kept) }}
- --max-lora-rank={{ .pool.adapters.rankMax }}
{{- include "backtalk.targetModules" .pool }}
{{- end }}
{{- with int .pool.model.lengthMax }}
- --context-length={{ . }}
{{- end }}
{{- with .pool.model.dtype }}
- --dtype={{ . }}
{{- end }}
{{- if gt (int .pool.gpu.count) 1 }}
- --tp-size={{ .pool.gpu.count }}
{{- end }}
{{- end }}

{{/* One flag, and a word for each layer. */}}
{{- define "backtalk.targetModules" }}
{{- with .model.loraTargetModules }}
- --lora-target-modules
{{- range . }}
- {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "backtalk.builtinVariables" -}}
BACKTALK_ENGINE_HOST: {{ include "backtalk.anyHost" .root | quote }}
BACKTALK_ENGINE_PORT: 30030
BACKTALK_ENGINE_MODEL_NAME: {{ .pool.model.name | quote }}
BACKTALK_ENGINE_LENGTH_MAX: {{ int .pool.model.lengthMax }}
{{- if eq .pool.model.quantization "nf4" }}
BACKTALK_ENGINE_QUANTIZATION: nf4
{{- end }}
BACKTALK_ENGINE_ADAPTERS_MAX: {{ include "backtalk.adapterPlaces" (dict "root" .root "count" .pool.adapters.kept) }}
BACKTALK_ENGINE_ADAPTER_RANK_MAX: {{ .pool.adapters.rankMax }}
BACKTALK_ENGINE_SHUTDOWN_SECONDS: {{ .root.Values.gateway.answerSeconds }}
BACKTALK_LOG_LEVEL: {{ ternary "warning" .root.Values.logLevel (eq .root.Values.logLevel "warn") }}
{{- with include "backtalk.modelPath" .pool }}
BACKTALK_ENGINE_MODEL_DIR: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "backtalk.vllmVariables" -}}
VLLM_ALLOW_RUNTIME_LORA_UPDATING: "True"
VLLM_NO_USAGE_STATS: 1
VLLM_CACHE_ROOT: /tmp/vllm
{{- end }}

{{- define "backtalk.sglangVariables" -}}
# Else each look at its health has a token generated, which takes a second and more.
SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION: "false"
{{- end }}

{{- define "backtalk.engineVariables" -}}
{{- $own := dict "HOME" "/tmp" "USER" "engine" "HF_HUB_OFFLINE" "1" "PYTHONUNBUFFERED" "1" }}
{{- if eq .pool.engine "builtin" }}{{ $own = merge $own (include "backtalk.builtinVariables" . | fromYaml) }}{{ end }}
{{- if eq .pool.engine "sglang" }}{{ $own = merge $own (include "backtalk.sglangVariables" . | fromYaml) }}{{ end }}
{{- if eq .pool.engine "vllm" }}{{ $own = merge $own (include "backtalk.vllmVariables" . | fromYaml) }}{{ end }}
{{- $key := ternary "judge-engine-key" "engine-key" (eq .name "judge") }}
{{- $variable := get (dict "builtin" "BACKTALK_ENGINE_KEY" "vllm" "VLLM_API_KEY" "sglang" "ENGINE_KEY") .pool.engine }}
{{ include "backtalk.secretVariable" (dict "variable" $variable "secret" (include "backtalk.secretName" .root) "key" $key) }}
{{- if and (eq .name "serving") (include "backtalk.judgeAsksServing" .root) }}
{{ include "backtalk.secretVariable" (dict "variable" "BACKTALK_ENGINE_JUDGE_KEY" "secret" (include "backtalk.secretName" .root) "key" "judge-engine-key") }}
{{- end }}
{{ include "backtalk.plainVariables" (dict "own" $own "extra" .pool.env) }}
{{- end }}
