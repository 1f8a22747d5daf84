{{/* What the schema cannot say: values that do not go together. Each line names the value and what to do. */}}

{{- define "backtalk.checks" -}}
{{- include "backtalk.checkSecret" . }}
{{- include "backtalk.checkNames" . }}
{{- include "backtalk.checkImages" . }}
{{- include "backtalk.checkStores" . }}
{{- include "backtalk.checkGateway" . }}
{{- include "backtalk.checkReplicas" . }}
{{- include "backtalk.checkVotes" . }}
{{- range $name := list "serving" "rollout" "judge" "evaluation" "training" }}
{{- include "backtalk.checkPool" (dict "root" $ "name" $name "own" (index $.Values.pools $name) "pool" (include "backtalk.pool" (dict "root" $ "name" $name) | fromYaml)) }}
{{- end }}
{{- end }}

{{- define "backtalk.checkImages" -}}
{{- range $name, $image := .Values.images }}
{{- if kindIs "map" $image }}
{{- if and (eq (toString $image.tag) "latest") (not $image.digest) }}{{ fail (printf "images.%s.tag: latest is another image tomorrow; use a version or a digest." $name) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "backtalk.checkStores" -}}
{{- $production := eq .Values.profile "production" }}
{{- if and $production .Values.nats.enabled }}{{ fail "nats.enabled: profile production keeps no facts on a single broker; set nats.enabled=false and nats.external.url to a cluster of three." }}{{ end }}
{{- if and $production (lt (int .Values.streams.replicas) 3) }}{{ fail "streams.replicas: profile production needs 3." }}{{ end }}
{{- if and .Values.nats.enabled (gt (int .Values.streams.replicas) 1) }}{{ fail "streams.replicas: the broker of the release is a single one; set 1, or nats.external.url." }}{{ end }}
{{- if and $production (not .Values.nats.external.monitorUrl) }}{{ fail "nats.external.monitorUrl: profile production asks the broker whether writes are synced; give its monitoring address." }}{{ end }}
{{- if .Values.nats.enabled }}
{{- $stored := include "backtalk.bytes" .Values.nats.fileStoreMax | int64 }}
{{- if ge $stored (include "backtalk.bytes" .Values.nats.size | int64) }}{{ fail "nats.fileStoreMax: must be less than nats.size, or a full volume comes before a full store." }}{{ end }}
{{- if ge (include "backtalk.bytes" .Values.streams.turnsMax | int64) $stored }}{{ fail "streams.turnsMax: must be less than nats.fileStoreMax, which holds weights and blobs too." }}{{ end }}
{{- end }}
{{- $age := mul (regexFind "^[0-9]+" .Values.streams.turnsAge) (ternary 3600 60 (hasSuffix "h" .Values.streams.turnsAge)) }}
{{- if le $age (int64 .Values.collector.sessionIdleSeconds) }}{{ fail "streams.turnsAge: must be longer than collector.sessionIdleSeconds, or turns are gone before their session is over." }}{{ end }}
{{- if not .Values.nats.enabled }}
{{- if not .Values.nats.external.url }}{{ fail "nats.external.url: give the broker's address, or set nats.enabled=true." }}{{ end }}
{{- if not .Values.nats.external.existingSecret }}{{ fail "nats.external.existingSecret: give the Secret with the users' passwords (keys nats-<user>)." }}{{ end }}
{{- end }}
{{- if and (not .Values.valkey.enabled) (not .Values.valkey.external.existingSecret) }}{{ fail "valkey.external.existingSecret: give the Secret with the key valkey-url, or set valkey.enabled=true." }}{{ end }}
{{- if .Values.valkey.enabled }}
{{- $units := dict "kb" "Ki" "mb" "Mi" "gb" "Gi" }}
{{- $max := printf "%s%s" (regexFind "^[0-9]+" .Values.valkey.memoryMax) (get $units (regexFind "[a-z]+$" .Values.valkey.memoryMax)) }}
{{- if lt (include "backtalk.bytes" .Values.valkey.size | int64) (include "backtalk.bytes" $max | int64 | mul 3) }}{{ fail (printf "valkey.size: %s is less than three times valkey.memoryMax (%s): its file grows to twice what it holds before it is written anew, beside the old one; give the volume more." .Values.valkey.size .Values.valkey.memoryMax) }}{{ end }}
{{- with (.Values.valkey.resources.limits | default dict).memory }}
{{- if ge (include "backtalk.bytes" $max | int64) (include "backtalk.bytes" . | int64) }}{{ fail (printf "valkey.memoryMax: must be less than valkey.resources.limits.memory (%s), or the kernel ends it before it is full." (toString .)) }}{{ end }}
{{- end }}
{{- end }}
{{- if eq .Values.blobs.store "s3" }}
{{- if not .Values.blobs.s3.bucket }}{{ fail "blobs.s3.bucket: the store s3 needs a bucket." }}{{ end }}
{{- end }}
{{- end }}

{{- define "backtalk.checkGateway" -}}
{{- if and (eq .Values.gateway.spool.type "emptyDir") (eq .Values.gateway.capture "required") }}{{ fail "gateway.spool.type: an emptyDir loses turns with its pod; set persistent, or gateway.capture=best-effort." }}{{ end }}
{{- if ge (include "backtalk.bytes" .Values.gateway.spool.max | int64) (include "backtalk.bytes" .Values.gateway.spool.size | int64) }}{{ fail "gateway.spool.max: must be less than gateway.spool.size, or a full disk comes before a full spool." }}{{ end }}
{{- range $at, $share := dict "policy.temperature" (list .Values.policy.temperature 0 2) "judge.voteShare" (list .Values.judge.voteShare 0 1) }}
{{- if or (lt (first $share | toString | float64) (index $share 1 | float64)) (gt (first $share | toString | float64) (last $share | float64)) }}{{ fail (printf "%s: must be from %v to %v." $at (index $share 1) (last $share)) }}{{ end }}
{{- end }}
{{- range $policy := include "backtalk.policies" . | fromYamlArray }}{{ if regexMatch "-v[0-9]+$" $policy }}{{ fail (printf "policy: %s is the name of a version; a policy's name does not end so." $policy) }}{{ end }}{{ end }}
{{- if has .Values.policy.name .Values.policy.others }}{{ fail (printf "policy.others: %s is policy.name already; name further policies only." .Values.policy.name) }}{{ end }}
{{- if has .Values.model.name (include "backtalk.policies" . | fromYamlArray) }}{{ fail (printf "policy: %s is model.name, under which the base itself answers; give the policy another name." .Values.model.name) }}{{ end }}
{{- if gt (int .Values.pools.training.replicas) (len (include "backtalk.policies" . | fromYamlArray)) }}{{ fail (printf "pools.training.replicas: %v training pods for %v policies: each policy has one step at a time, so some would never work." .Values.pools.training.replicas (len (include "backtalk.policies" . | fromYamlArray))) }}{{ end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}{{ fail "ingress.host: an Ingress needs a host name." }}{{ end }}
{{- end }}

{{/* Who gives the judges a model of their own wants it to judge. */}}
{{- define "backtalk.checkVotes" -}}
{{- $pool := include "backtalk.pool" (dict "root" . "name" "judge") | fromYaml }}
{{- if and (ne .Values.judge.backend "free") (not $pool.shares) (ne $pool.model.name .Values.model.name) }}{{ fail (printf "judge.backend: %s asks no model, and pools.judge has one of its own, %s; set free, or pools.judge.shares=serving." .Values.judge.backend $pool.model.name) }}{{ end }}
{{- end }}

{{- define "backtalk.checkReplicas" -}}
{{- range $name := list "gateway" "judge" }}
{{- include "backtalk.checkOwner" (dict "root" $ "name" $name "settings" (index $.Values $name)) }}
{{- end }}
{{- end }}

{{/* (root, name, settings) */}}
{{- define "backtalk.checkOwner" -}}
{{- $component := replace "pools." "engine-" .name }}
{{- if and (include "backtalk.scales" .settings) (not (kindIs "invalid" .settings.replicas)) }}{{ fail (printf "%s.replicas: %s.autoscaling.kind=%s owns the replicas; set replicas to null, or the kind to none." .name .name .settings.autoscaling.kind) }}{{ end }}
{{- if and (eq .settings.autoscaling.kind "keda") (not .root.Values.keda.prometheusUrl) }}{{ fail (printf "keda.prometheusUrl: %s.autoscaling.kind=keda needs a Prometheus to ask." .name) }}{{ end }}
{{- if and (eq .settings.autoscaling.kind "keda") (not .root.Values.metrics.serviceMonitor.enabled) (not .settings.autoscaling.query) (not (get .root.Values.keda.queries $component)) }}{{ fail (printf "metrics.serviceMonitor.enabled: %s.autoscaling.kind=keda asks for labels that only the chart's ServiceMonitor adds; set it to true, or give %s.autoscaling.query or keda.queries.%s." .name .name $component) }}{{ end }}
{{- if gt (int .settings.autoscaling.min) (int .settings.autoscaling.max) }}{{ fail (printf "%s.autoscaling.min: is more than %s.autoscaling.max." .name .name) }}{{ end }}
{{- end }}

{{/* (root, name, own, pool) */}}
{{- define "backtalk.checkPool" -}}
{{- $at := printf "pools.%s" .name }}
{{- if and .pool.shares (has .name (list "serving" "training")) }}{{ fail (printf "poolDefaults.shares: %s shares nobody's engines; say shares=serving in the pools that do." $at) }}{{ end }}
{{- if .pool.shares }}
{{- if or (hasKey .own "engine") (hasKey .own "gpu") (hasKey .own "model") }}{{ fail (printf "%s.shares: the pool shares the engines of serving, so it has no engine, model or GPU of its own; set shares to ''." $at) }}{{ end }}
{{- else }}
{{- if ne .name "training" }}{{ include "backtalk.checkOwner" (dict "root" .root "name" $at "settings" (dict "replicas" .own.replicas "autoscaling" .pool.autoscaling)) }}{{ end }}
{{- if and (ne .name "judge") (ne .pool.model.name .root.Values.model.name) }}{{ fail (printf "%s.model.name: only the judge pool may have another base model than model.name." $at) }}{{ end }}
{{- if and (ne .name "judge") (ne .pool.model.quantization .root.Values.model.quantization) }}{{ fail (printf "%s.model.quantization: engines and training hold the base alike; set model.quantization." $at) }}{{ end }}
{{- if and (eq .name "training") (eq .pool.model.quantization "nf4") }}
{{- if eq .pool.model.dtype "float64" }}{{ fail (printf "%s.model.dtype: a base in 4 bits computes in bfloat16 or float32." $at) }}{{ end }}
{{- if eq (include "backtalk.text" (.pool.env.BACKTALK_TRAINING_SHARDING | default "off")) "on" }}{{ fail (printf "%s.env.BACKTALK_TRAINING_SHARDING: each process holds all of a base in 4 bits; leave it out." $at) }}{{ end }}
{{- if eq (include "backtalk.text" (.pool.env.BACKTALK_TRAINING_BACKEND | default "torch")) "tinker" }}{{ fail (printf "%s.env.BACKTALK_TRAINING_BACKEND: a training service holds the base itself; set model.quantization=none." $at) }}{{ end }}
{{- end }}
{{- if and (ne .name "judge") .pool.model.lengthMax (lt (int .pool.model.lengthMax) (int .root.Values.model.lengthMax)) }}{{ fail (printf "%s.model.lengthMax: is less than model.lengthMax, which clients of the policy may use; loaders refuse such engines." $at) }}{{ end }}
{{- if and (ne .name "training") (ne .pool.engine "builtin") (not (include "backtalk.modelPath" .pool)) }}{{ fail (printf "%s.engine: %s needs model.hub or model.path." $at .pool.engine) }}{{ end }}
{{- if and (eq .name "judge") (eq .pool.engine "sglang") }}{{ fail "pools.judge.engine: judges speak to builtin or vllm; give the pool one of them." }}{{ end }}
{{- if and .pool.model.claim (not .pool.model.path) }}{{ fail (printf "%s: model.path: say where below /models the claim holds the model." $at) }}{{ end }}
{{- if and (eq .name "training") (eq .pool.model.dtype "float16") }}{{ fail (printf "%s.model.dtype: training does not compute in float16; give the pool bfloat16 or float32." $at) }}{{ end }}
{{- if and (has .pool.engine (list "vllm" "sglang")) (ne .name "training") (eq .pool.model.dtype "float64") }}{{ fail (printf "%s.model.dtype: %s does not compute in float64." $at .pool.engine) }}{{ end }}
{{- if and (eq .pool.engine "sglang") (ne .name "training") (eq .pool.model.quantization "nf4") }}{{ fail (printf "%s.model.quantization: nf4 is served by vllm and builtin; give the pool one of them." $at) }}{{ end }}
{{- if gt (int (include "backtalk.loraRank" .root)) (int .pool.adapters.rankMax) }}{{ fail (printf "trainer.recipe: loraRank is more than adapters.rankMax of %s." $at) }}{{ end }}
{{- if le (int .pool.adapters.kept) (int .pool.adapters.loaded) }}{{ fail (printf "%s.adapters.kept: must be more than adapters.loaded." $at) }}{{ end }}
{{- include "backtalk.checkHardware" (dict "at" $at "name" .name "pool" .pool) }}
{{- include "backtalk.checkRevision" (dict "at" $at "pool" .pool) }}
{{- end }}
{{- end }}
