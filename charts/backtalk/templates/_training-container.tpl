{{- define "backtalk.trainingVariables" -}}
BACKTALK_GRPC_ADDRESS: "{{ include `backtalk.anyAddress` .root }}:30026"
BACKTALK_HEALTH_ADDRESS: "{{ include `backtalk.anyAddress` .root }}:30016"
BACKTALK_BASE_MODEL: {{ .pool.model.name | quote }}
BACKTALK_DEVICE: {{ ternary "cuda" "cpu" (not (empty (include "backtalk.hasDevice" .pool))) }}
BACKTALK_BLOB_CACHE_DIR: /cache/blobs
BACKTALK_BLOB_CACHE_BYTES: {{ include "backtalk.bytes" .pool.cache.max | quote }}
BACKTALK_LOG_LEVEL: {{ .root.Values.logLevel }}
HF_HUB_OFFLINE: 1
HOME: /tmp
PYTHONUNBUFFERED: 1
{{- if gt (int .pool.gpu.count) 1 }}
BACKTALK_TRAINING_PROCESSES: {{ int .pool.gpu.count | quote }}
{{- end }}
{{- if eq .pool.model.quantization "nf4" }}
BACKTALK_QUANTIZATION: nf4
{{- end }}
{{- with .pool.model.dtype }}
BACKTALK_DTYPE: {{ . }}
{{- end }}
{{- with include "backtalk.modelPath" .pool }}
BACKTALK_MODEL_DIR: {{ . | quote }}
{{- end }}
{{- end }}

{{/* (root, pool) */}}
{{- define "backtalk.trainingContainer" -}}
name: training
image: {{ include "backtalk.image" (dict "root" .root "image" (index .root.Values.images (ternary "workerCuda" "worker" (not (empty (include "backtalk.hasDevice" .pool)))))) }}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
command: [python, -m, backtalk_worker.training]
env:
  {{- include "backtalk.plainVariables" (dict "own" (include "backtalk.trainingVariables" . | fromYaml) "extra" .pool.env) | trim | nindent 2 }}
ports:
  - { name: grpc, containerPort: 30026 }
  - { name: health, containerPort: 30016 }
{{ include "backtalk.serviceProbes" . | replace "failureThreshold: 60" (printf "failureThreshold: %d" (div .pool.startSeconds 2)) }}
resources:
  {{- include "backtalk.poolResources" .pool | nindent 2 }}
securityContext:
  {{- include "backtalk.containerSecurity" (dict "readOnly" true) | nindent 2 }}
volumeMounts:
  - { name: scratch, mountPath: /tmp }
  - { name: cache, mountPath: /cache }
  - { name: shm, mountPath: /dev/shm }
  {{- if include "backtalk.modelMounted" .pool }}
  - { name: model, mountPath: /models, readOnly: true }
  {{- end }}
{{- end }}

{{/* Numbers of the recipe that differ, as the trainer reads them: name=value, in the order of the names. */}}
{{- define "backtalk.recipeSet" -}}
{{- $pairs := list }}
{{- range $name, $value := .Values.trainer.recipeSet }}
{{- $pairs = append $pairs (printf "%s=%s" $name (include "backtalk.text" $value)) }}
{{- end }}
{{- join "," $pairs }}
{{- end }}

{{/* Rank of the adapters that the recipe trains: loaders try it on engines, and no engine may take less. */}}
{{- define "backtalk.loraRank" -}}
{{- get .Values.trainer.recipeSet "loraRank" | default (get (dict "tiny" 8 "small" 16 "remote" 32) .Values.trainer.recipe) | int }}
{{- end }}
