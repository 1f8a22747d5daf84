{{/*
Values that are not there: an upgrade with --reuse-values brings those of the chart before, and null takes one away. Every
template calls this first, and from then on each value is there; null means the default. Resources and labels are the
reader's own maps, in which null takes an entry away, and runAs may be null.
*/}}
{{- define "backtalk.values" -}}
{{- if not (hasKey .Values "complete") }}
{{- include "backtalk.renamedValues" .Values }}
{{- include "backtalk.fill" (dict "into" .Values "from" (.Files.Get "files/defaults.yaml" | fromYaml)) }}
{{- $_ := set .Values "complete" true }}
{{- end }}
{{- end }}

{{/* (into, from) */}}
{{- define "backtalk.fill" -}}
{{- range $key, $value := .from }}
{{- $own := get $.into $key }}
{{- if eq $key "runAs" }}
{{- else if or (not (hasKey $.into $key)) (kindIs "invalid" $own) }}
{{- $_ := set $.into $key $value }}
{{- else if and (kindIs "map" $own) (kindIs "map" $value) (not (has $key (list "resources" "labels"))) }}
{{- include "backtalk.fill" (dict "into" $own "from" $value) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Names that values had in earlier charts. Numbers of training became part of a recipe: those that somebody chose are kept. */}}
{{- define "backtalk.renamedValues" -}}
{{- with .judge }}
{{- if hasKey . "turnsInFlight" }}{{ $_ := set . "turnsInHand" .turnsInFlight }}{{ end }}
{{- if eq (.backend | default "") "scored" }}{{ $_ := set . "backend" "words" }}{{ end }}
{{- end }}
{{- with .trainer }}
{{- $recipeSet := .recipeSet | default dict }}
{{- range $old := list (list "method" "combined" "method") (list "loraRank" 8 "loraRank") (list "loraAlpha" 16 "loraAlpha") (list "batchSize" 8 "effective") }}
{{- $value := get $.trainer (first $old) | toString }}
{{- if and (hasKey $.trainer (first $old)) (ne $value (index $old 1 | toString)) }}{{ $_ := set $recipeSet (last $old) (get $.trainer (first $old)) }}{{ end }}
{{- end }}
{{- $_ := set . "recipeSet" $recipeSet }}
{{- end }}
{{- end }}
