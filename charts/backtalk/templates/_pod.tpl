{{/*
A pod as the templates make it, with what the values merge into it: the `pod` of all, then the component's own. Maps merge,
lists grow, everything else is replaced; a node selector, an affinity and the spreading are replaced whole. `container` goes
into every container, those that fetch models too.
*/}}

{{/* (root, component, settings, containers, …) → metadata and spec of a pod. */}}
{{- define "backtalk.podTemplate" -}}
{{- $template := dict
  "metadata" (dict "labels" (include "backtalk.podLabels" . | fromYaml) "annotations" (include "backtalk.podAnnotations" . | fromYaml))
  "spec" (include "backtalk.podSpec" . | fromYaml) }}
{{- with $template.spec.Error }}{{ fail (printf "The pod of %s is no YAML: %s" $.component .) }}{{ end }}
{{- $containers := concat ($template.spec.initContainers | default list) $template.spec.containers }}
{{- include "backtalk.addIdentity" (dict "root" .root "containers" $containers "spec" $template.spec) }}
{{- range $pod := list .root.Values.pod (.settings.pod | default dict) }}
{{- include "backtalk.mergePart" (dict "into" $template.metadata "from" (pick $pod "labels" "annotations")) }}
{{- range $containers }}{{ include "backtalk.mergePart" (dict "into" . "from" $pod.container) }}{{ end }}
{{- include "backtalk.mergePart" (dict "into" $template.spec "from" $pod.spec) }}
{{- end }}
{{- range $containers }}
{{- if .env }}{{ $_ := set . "env" (include "backtalk.uniqueVariables" .env | fromYamlArray) }}{{ end }}
{{- end }}
{{- toYaml $template }}
{{- end }}

{{/* (into, from?) */}}
{{- define "backtalk.mergePart" -}}
{{- range $key, $value := .from }}
{{- $own := get $.into $key }}
{{- if and (kindIs "slice" $value) (kindIs "slice" $own) (ne $key "topologySpreadConstraints") }}
{{- $_ := set $.into $key (concat $own $value) }}
{{- else if and (kindIs "map" $value) (kindIs "map" $own) (not (has $key (list "nodeSelector" "affinity"))) }}
{{- include "backtalk.mergePart" (dict "into" $own "from" $value) }}
{{- else if kindIs "map" $value }}
{{- /* Its own: what is merged into one pod later is no other's. */}}
{{- $_ := set $.into $key (deepCopy $value) }}
{{- else }}
{{- $_ := set $.into $key $value }}
{{- end }}
{{- end }}
{{- end }}

{{/* A list of variables → each name once, where it stood first, with what was said of it last. */}}
{{- define "backtalk.uniqueVariables" -}}
{{- $last := dict }}
{{- range . }}{{ $_ := set $last .name . }}{{ end }}
{{- $kept := list }}
{{- range . }}
{{- if hasKey $last .name }}{{ $kept = append $kept (get $last .name) }}{{ $_ := unset $last .name }}{{ end }}
{{- end }}
{{- toYaml $kept }}
{{- end }}
