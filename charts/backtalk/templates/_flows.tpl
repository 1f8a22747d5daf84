{{/*
Every connection inside an installation: who calls whom, on which port. NetworkPolicies are both ends of this table, and
whatever does not stand in it is refused.
*/}}
{{- define "backtalk.flows" -}}
{{- $engines := list }}
{{- range $name := include "backtalk.ownPools" . | fromYamlArray }}{{ $engines = append $engines (printf "engine-%s" $name) }}{{ end }}
{{- $loaders := without $engines "engine-judge" }}
{{- $voters := ternary (list "engine-judge") (list "engine-serving") (has "engine-judge" $engines) }}
{{- $services := concat (list "gateway" "collector" "judge" "trainer" "publisher") $loaders }}
{{- $commands := ternary (list "commands") list .Values.commands.enabled }}
{{- if .Values.nats.enabled }}
- { from: {{ concat $services (list "streams") $commands | toJson }}, to: [nats], port: 4222 }
- { from: {{ toJson $services }}, to: [nats], port: 8222 }
{{- end }}
{{- if .Values.valkey.enabled }}
- { from: [gateway, collector, judge], to: [valkey], port: 6379 }
{{- end }}
- { from: [gateway, trainer], to: [engine-serving], port: 30030 }
- { from: {{ ternary (list "judge" "trainer") (list "judge") (not (empty (include "backtalk.trainerAsksJudges" .))) | toJson }}, to: {{ toJson $voters }}, port: 30030 }
- { from: [publisher], to: {{ toJson $loaders }}, port: 30030 }
- { from: [publisher], to: {{ toJson $loaders }}, port: 30025 }
- { from: [publisher], to: [gateway], port: 30020 }
- { from: [trainer], to: [training], port: 30026 }
- { from: {{ append $commands "test" | toJson }}, to: [gateway], port: 30000 }
{{- with $commands }}
- { from: {{ toJson . }}, to: [publisher], port: 30024 }
- { from: {{ toJson . }}, to: [gateway, publisher], port: 30010 }
- { from: {{ toJson . }}, to: {{ toJson $loaders }}, port: 30015 }
{{- end }}
{{- end }}

{{/* Ports that Prometheus reads, by component. */}}
{{- define "backtalk.metricPorts" -}}
gateway: [30010]
collector: [30010]
judge: [30010]
trainer: [30010]
publisher: [30010]
training: [30016]
{{- range $name := include "backtalk.ownPools" . | fromYamlArray }}
engine-{{ $name }}: {{ ternary "[30030]" "[30015, 30030]" (eq $name "judge") }}
{{- end }}
{{- if .Values.nats.enabled }}
nats: []
{{- end }}
{{- if .Values.valkey.enabled }}
valkey: []
{{- end }}
streams: []
{{- if .Values.commands.enabled }}
commands: []
{{- end }}
test: []
{{- end }}

{{/* (root, component) → what a component may open outside the installation, as a list of ports. */}}
{{- define "backtalk.outsidePorts" -}}
{{- $values := .root.Values }}
{{- $ports := list }}
{{- $loader := and (hasPrefix "engine-" .component) (ne .component "engine-judge") }}
{{- $service := or $loader (has .component (list "gateway" "collector" "judge" "trainer" "publisher")) }}
{{- if and (or $service (has .component (list "streams" "commands"))) (not $values.nats.enabled) }}
{{- $addresses := prepend (splitList "," $values.nats.external.url) (ternary $values.nats.external.monitorUrl "" $service) }}
{{- $ports = concat $ports (default (include "backtalk.portsOf" $addresses | fromJsonArray) $values.nats.external.ports) }}
{{- end }}
{{- if and (has .component (list "gateway" "collector" "judge")) (not $values.valkey.enabled) }}{{ $ports = concat $ports $values.valkey.external.ports }}{{ end }}
{{- if and (or $service (eq .component "commands")) (eq $values.blobs.store "s3") }}
{{- $ports = concat $ports (include "backtalk.portOr" (list $values.blobs.s3.port (default "https://amazon" $values.blobs.s3.endpoint)) | fromJsonArray) }}
{{- end }}
{{- if and $service $values.tracing.endpoint }}
{{- $ports = concat $ports (include "backtalk.portOr" (list $values.tracing.port $values.tracing.endpoint) | fromJsonArray) }}
{{- end }}
{{- if and $values.engineHosts (has .component (list "gateway" "judge" "trainer" "publisher")) }}
{{- $ports = append $ports 30030 }}
{{- if eq .component "publisher" }}{{ $ports = append $ports 30025 }}{{ end }}
{{- end }}
{{- if has .component (list "judge" "trainer") }}
{{- with get (get $values .component).env "BACKTALK_JUDGE_URL" }}
{{- $ports = concat $ports (include "backtalk.portsOf" (splitList "," .) | fromJsonArray) }}
{{- end }}
{{- end }}
{{- if or (hasPrefix "engine-" .component) (eq .component "training") }}
{{- $model := (include "backtalk.pool" (dict "root" .root "name" (trimPrefix "engine-" .component)) | fromYaml).model }}
{{- if and $model.hub (not $model.claim) }}{{ $ports = append $ports 443 }}{{ end }}
{{- end }}
{{- uniq $ports | toJson }}
{{- end }}

{{/* (port?, address) → the port that the values name, or the address's own; as a list. */}}
{{- define "backtalk.portOr" -}}
{{- if first . }}{{ list (first .) | toJson }}{{ else }}{{ include "backtalk.portsOf" (rest .) }}{{ end }}
{{- end }}

{{/* A list of addresses → their ports: as they stand there, or those that go with their schemes. */}}
{{- define "backtalk.portsOf" -}}
{{- $ports := list }}
{{- range compact . }}
{{- $address := trim . }}
{{- $url := urlParse (ternary $address (printf "nats://%s" $address) (contains "://" $address)) }}
{{- $own := regexFind ":[0-9]+$" $url.host | trimPrefix ":" }}
{{- $ports = append $ports (default (get (dict "https" 443 "http" 80 "nats" 4222 "tls" 4222) $url.scheme) $own | int) }}
{{- end }}
{{- toJson $ports }}
{{- end }}
