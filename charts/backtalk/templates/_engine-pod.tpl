{{/* The containers of an engine's pod: the engine, and the loader beside it. */}}

{{/* Startup: the weights are read. Liveness: the engine's own word. Readiness: it answers; the loader adds whether it has a version. */}}
{{- define "backtalk.engineContainer" -}}
name: engine
image: {{ include "backtalk.image" (dict "root" .root "image" (index .root.Values.images (ternary "worker" .pool.engine (eq .pool.engine "builtin")))) }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
{{- include "backtalk.engineCommand" . }}
env:
  {{- include "backtalk.engineVariables" . | trim | nindent 2 }}
ports:
  - { name: engine, containerPort: 30030 }
startupProbe:
  httpGet: { path: /health, port: engine }
  periodSeconds: 5
  timeoutSeconds: 5
  failureThreshold: {{ div .pool.startSeconds 5 }}
livenessProbe:
  httpGet: { path: /health, port: engine }
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
readinessProbe:
  tcpSocket: { port: engine }
  periodSeconds: 5
lifecycle:
  preStop:
    exec:
      # Until the loader's lease is gone everywhere, requests still come.
      command: [sleep, "15"]
resources:
  {{- include "backtalk.poolResources" .pool | nindent 2 }}
securityContext:
  {{- include "backtalk.containerSecurity" (dict "readOnly" (eq .pool.engine "builtin")) | nindent 2 }}
volumeMounts:
  - { name: scratch, mountPath: /tmp }
  - { name: shm, mountPath: /dev/shm }
  {{- if .hasLoader }}
  - { name: adapters, mountPath: /adapters }
  {{- end }}
  {{- if include "backtalk.modelMounted" .pool }}
  - { name: model, mountPath: /models, readOnly: true }
  {{- end }}
{{- end }}

{{/* Requests stay as they are; GPUs stand in the limits only, as Kubernetes wants extended resources. */}}
{{- define "backtalk.poolResources" -}}
{{- $resources := deepCopy .resources }}
{{- if int .gpu.count }}
{{- $resources = mergeOverwrite $resources (dict "limits" (dict .gpu.resource (int .gpu.count))) }}
{{- end }}
{{- toYaml $resources }}
{{- end }}

{{/* What the policy needs comes from where the trainer and the engines have it from; an engine that has less is refused. */}}
{{- define "backtalk.loaderContainer" -}}
{{- $plain := dict
  "BACKTALK_HEALTH_ADDRESS" (printf "%s:30015" (include "backtalk.anyAddress" .root))
  "BACKTALK_POLICIES" (include "backtalk.policies" .root | fromYamlArray | join ",")
  "BACKTALK_BASE_MODEL" .root.Values.model.name
  "BACKTALK_CONTEXT_MIN" (int .root.Values.model.lengthMax)
  "BACKTALK_LORA_RANK" (int (include "backtalk.loraRank" .root))
  "BACKTALK_ENGINE_URL" (printf "http://%s:30030" (include "backtalk.ownAddress" .root))
  "BACKTALK_ENGINE_DIALECT" .pool.engine
  "BACKTALK_ENGINE_POOLS" (include "backtalk.poolsOf" .)
  "BACKTALK_ADAPTER_DIR" "/adapters"
  "BACKTALK_RETIRE_GRACE" (printf "%ds" (int (add .root.Values.gateway.answerSeconds 300)))
  "BACKTALK_GRPC_ADDRESS" (printf "%s:30025" (include "backtalk.anyAddress" .root))
  "BACKTALK_GRPC_ADVERTISED" (printf "%s:30025" (include "backtalk.ownAddress" .root)) }}
{{- $mounts := list (dict "name" "adapters" "mountPath" "/adapters") }}
{{- if include "backtalk.modelMounted" .pool }}
{{- $_ := set $plain "BACKTALK_MODEL_DIR" (include "backtalk.modelPath" .pool) }}
{{- $mounts = append $mounts (dict "name" "model" "mountPath" "/models" "readOnly" true) }}
{{- end }}
{{- $env := printf "%s\n%s" (include "backtalk.serviceVariables" (dict "root" .root "user" "loader" "plain" $plain "extra" .root.Values.loader.env))
  (include "backtalk.engineKey" (dict "root" .root "key" "engine-key")) }}
{{- include "backtalk.serviceContainer" (dict "root" .root "name" "loader" "image" .root.Values.images.services
  "command" (list "node" "services/loader/dist/main.js") "env" $env "mounts" $mounts
  "ports" (dict "grpc" 30025 "health" 30015) "resources" .root.Values.loader.resources) }}
{{- end }}
