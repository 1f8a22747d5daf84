{{/*
What the cluster holds already, where Helm asks one: without, every lookup finds nothing. What Kubernetes would refuse to
change is refused here, before anything is touched.
*/}}

{{/* Which values the claims of a StatefulSet come from. */}}
{{- define "backtalk.claimValues" -}}
gateway: gateway.spool.type, gateway.spool.size, gateway.spool.storageClass
nats: nats.size, nats.storageClass
valkey: valkey.size, valkey.storageClass
training: pools.training.cache.size, pools.training.cache.storageClass
{{- end }}

{{/* (root, component, kind, claims?) */}}
{{- define "backtalk.checkClaims" -}}
{{- $live := lookup "apps/v1" .kind .root.Release.Namespace (include "backtalk.name" .) }}
{{- if and $live (eq .kind "StatefulSet") }}
{{- $held := list }}
{{- range $live.spec.volumeClaimTemplates }}
{{- $held = append $held (printf "%s of %s bytes, class %q" .metadata.name (include "backtalk.bytes" .spec.resources.requests.storage) (.spec.storageClassName | default "")) }}
{{- end }}
{{- $wanted := list }}
{{- range .claims }}
{{- $wanted = append $wanted (printf "%s of %s bytes, class %q" .name (include "backtalk.bytes" .size) (default $.root.Values.storage.class .storageClass)) }}
{{- end }}
{{- if ne (join ", " $held) (join ", " $wanted) }}
{{- fail (printf "%s: %s has volumes (%s), and these values ask for others (%s), which Kubernetes does not change in place. Nothing was touched. README.md, \"Volumes that must grow or move\", says how it is done; or set the values back (storage.class counts too)."
  (get (include "backtalk.claimValues" . | fromYaml) .component) (include "backtalk.name" .) (default "none" (join ", " $held)) (default "none" (join ", " $wanted))) }}
{{- end }}
{{- end }}
{{- end }}

{{/*
(root, component, kind, settings) → the replicas that an autoscaler is handed. Where the values owned them until now, a manifest
without them would be read as one replica; and once they were written, they stay written, as many as there are. A workload that was
taken away from its pods, so that its volumes may grow, is made with as many as its autoscaler knows.
*/}}
{{- define "backtalk.keptReplicas" -}}
{{- $name := include "backtalk.name" . }}
{{- $namespace := .root.Release.Namespace }}
{{- $live := lookup "apps/v1" .kind $namespace $name }}
{{- $scaler := or (lookup "autoscaling/v2" "HorizontalPodAutoscaler" $namespace $name) (lookup "autoscaling/v2" "HorizontalPodAutoscaler" $namespace (printf "keda-hpa-%s" $name)) }}
{{- if and $scaler (not $live) }}{{ max (int ($scaler.status | default dict).currentReplicas) (int .settings.autoscaling.min) }}{{ end }}
{{- if $live }}
{{- $isKept := hasKey ($live.metadata.annotations | default dict) "backtalk/replicas" }}
{{- /* A live scaler raises them to its least by itself: another number than theirs would be a conflict with it. */}}
{{- if $scaler }}{{ if $isKept }}{{ int $live.spec.replicas }}{{ end }}{{ else }}{{ max (int $live.spec.replicas) (int .settings.autoscaling.min) }}{{ end }}
{{- end }}
{{- end }}

{{/* One release has one prefix of names: another would leave the volumes and the Secret of the first behind. */}}
{{- define "backtalk.checkNames" -}}
{{- $name := include "backtalk.fullname" . }}
{{- range (lookup "apps/v1" "StatefulSet" .Release.Namespace "").items }}
{{- $labels := .metadata.labels | default dict }}
{{- $isOurs := and (eq (get $labels "app.kubernetes.io/part-of") "backtalk") (eq (get $labels "app.kubernetes.io/component") "gateway") (eq (get $labels "app.kubernetes.io/instance") $.Release.Name) }}
{{- $isSame := or (eq (get $labels "app.kubernetes.io/name") (default $.Chart.Name $.Values.nameOverride)) (not (empty $.Values.nameOverride)) }}
{{- $prefix := trimSuffix "-gateway" .metadata.name }}
{{- if and $isOurs $isSame (ne $prefix $name) }}{{ fail (printf "fullnameOverride: the objects of this release are called %s-…, and these values would call them %s-…, beside their volumes and Secret; set fullnameOverride=%s and the nameOverride that it was installed with." $prefix $name $prefix) }}{{ end }}
{{- end }}
{{- end }}

{{/* A Secret of the reader's own that lacks a key would stop pods after the old ones are gone. */}}
{{- define "backtalk.checkSecret" -}}
{{- $secrets := .Values.secrets }}
{{- if and (not $secrets.existingSecret) (not $secrets.generate) }}{{ fail "secrets.existingSecret: with secrets.generate=false, give a Secret that has every key. README.md, \"Where charts are rendered without a cluster\", makes one." }}{{ end }}
{{- if and (not $secrets.existingSecret) (not (.Capabilities.APIVersions.Has "v1/Secret")) }}{{ fail "secrets.generate: Helm asks no cluster here, so that every render would make other secrets; set secrets.generate=false and secrets.existingSecret, or --api-versions v1/Secret to look at a render." }}{{ end }}
{{- /* Argo CD lists the cluster's kinds, its own among them, and lets nothing be looked up. Helm itself finds what it made before. */}}
{{- if and (not $secrets.existingSecret) (ne (toString $secrets.generate) "always") (.Capabilities.APIVersions.Has "argoproj.io/v1alpha1/Application") (not (lookup "v1" "Secret" .Release.Namespace (include "backtalk.fullname" .))) }}{{ fail "secrets.generate: this cluster has Argo CD, with which every render would make other secrets; set secrets.generate=false and secrets.existingSecret, or secrets.generate=always where Helm itself installs." }}{{ end }}
{{- range include "backtalk.givenSecrets" . | fromYamlArray }}
{{- $held := dict }}
{{- with .secret }}{{ $held = lookup "v1" "Secret" $.Release.Namespace . }}{{ end }}
{{- if $held }}
{{- $missing := list }}
{{- range .keys }}{{ if not (hasKey ($held.data | default dict) .) }}{{ $missing = append $missing . }}{{ end }}{{ end }}
{{- $password := ternary (get ($held.data | default dict) "valkey-password" | b64dec | trim) "" (has "valkey-password" .keys) }}
{{- if regexMatch "[^A-Za-z0-9._~-]" $password }}{{ fail (printf "%s: valkey-password in the Secret %s has characters that an address cannot hold; letters, digits and . _ ~ - can stand in one." .at .secret) }}{{ end }}
{{- if $missing }}{{ fail (printf "%s: the Secret %s lacks the keys %s, which pods need to start." .at .secret (join ", " $missing)) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
