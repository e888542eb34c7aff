{{- define "paceline.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* Of all objects: the release's name where that says paceline already. */}}
{{- define "paceline.fullname" -}}
{{- $name := include "paceline.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "paceline.selector" -}}
app.kubernetes.io/name: {{ include "paceline.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: controller
{{- end }}

{{- define "paceline.labels" -}}
{{ include "paceline.selector" . }}
app.kubernetes.io/part-of: paceline
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "paceline.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "paceline.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: say which ServiceAccount is to be used, or leave serviceAccount.create at true" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "paceline.image" -}}
{{- $image := .Values.image }}
{{- $repository := required "image.repository: say where the controller's image lies, e.g. --set image.repository=registry.example.com/paceline/controller (images/README.md says how it is built)" $image.repository }}
{{- if $image.digest }}
{{- printf "%s@%s" $repository $image.digest }}
{{- else }}
{{- printf "%s:%s" $repository (default .Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}

{{/* The port of an address HOST:PORT or [HOST]:PORT. */}}
{{- define "paceline.port" -}}
{{- splitList ":" . | last }}
{{- end }}

{{- define "paceline.lease.name" -}}
{{- default (printf "%s-controller" (include "paceline.fullname" .)) .Values.config.leaderElection.name }}
{{- end }}

{{- define "paceline.lease.namespace" -}}
{{- default .Release.Namespace .Values.config.leaderElection.namespace }}
{{- end }}

{{- define "paceline.authority.name" -}}
{{- default (printf "%s-authority" (include "paceline.fullname" .)) .Values.config.coordinator.tls.secret }}
{{- end }}

{{/* Whether the controller makes its own certificate, for any of its ports. */}}
{{- define "paceline.tls.own" -}}
{{- $config := .Values.config }}
{{- $dashboard := and $config.dashboard.address $config.dashboard.tls.enabled (not $config.dashboard.tls.keyFile) (not .Values.dashboardTlsSecret) }}
{{- if and (or $config.coordinator.tls.enabled $config.health.tls.enabled $dashboard) (not $config.coordinator.tls.certificateFile) (not .Values.tlsSecret) }}true{{ end }}
{{- end }}

{{/* How its ports are spoken to. */}}
{{- define "paceline.health.scheme" -}}
{{- ternary "https" "http" .Values.config.health.tls.enabled }}
{{- end }}

{{- define "paceline.dashboard.scheme" -}}
{{- ternary "https" "http" .Values.config.dashboard.tls.enabled }}
{{- end }}

{{/* The history's volume: "claim" of the chart's or of others, or "volume" of another kind; empty: no history is kept. */}}
{{- define "paceline.history" -}}
{{- $history := .Values.history }}
{{- if $history.enabled }}
{{- if not .Values.config.dashboard.address }}{{ fail "history.enabled is true, and there is no dashboard: set config.dashboard.address, e.g. 0.0.0.0:8090" }}{{ end }}
{{- $claims := or (not $history.volume) (hasKey $history.volume "persistentVolumeClaim") }}
{{- $shared := or (not $claims) (eq $history.accessMode "ReadWriteMany") }}
{{- if and (gt (int .Values.replicas) 1) (not $shared) }}
{{- fail (printf "history: a %s claim is for one pod, and there are %v replicas: set replicas=1; or history.accessMode=ReadWriteMany, where the storage class can; or --set-json 'history.volume={\"emptyDir\":{}}', which lasts as long as its pod" $history.accessMode .Values.replicas) }}
{{- end }}
{{- if not $history.volume }}
{{- /* Beyond the file: SQLite's log, and what the file system keeps for itself. Larger units always have room. */}}
{{- $unit := regexFind "[A-Z]i?$" $history.size }}
{{- $mebibytes := mulf (float64 (regexFind "^[0-9.]+" $history.size)) (get (dict "M" 0.954 "Mi" 1.0 "G" 953.7 "Gi" 1024.0) $unit | default 1e6) }}
{{- $least := mulf (float64 .Values.config.dashboard.history.megabytes) 1.1 | ceil | int }}
{{- if lt $mebibytes (float64 $least) }}
{{- fail (printf "history.size: a claim of %s has no room for a file of config.dashboard.history.megabytes=%v: set it to %dMi or more, or megabytes to less" $history.size .Values.config.dashboard.history.megabytes $least) }}
{{- end }}
{{- end }}
{{- if $claims }}claim{{ else }}volume{{ end }}
{{- end }}
{{- end }}

{{/* What the controller reads: `config`, with what only the chart knows filled in, and without what is empty. */}}
{{- define "paceline.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $service := printf "%s.%s.svc:%s" (include "paceline.fullname" .) .Release.Namespace (include "paceline.port" $config.coordinator.listen) }}
{{- if not $config.coordinator.address }}{{ $_ := set $config.coordinator "address" $service }}{{ end }}
{{- $_ := set $config.leaderElection "name" (include "paceline.lease.name" .) }}
{{- $_ := set $config.leaderElection "namespace" (include "paceline.lease.namespace" .) }}
{{- $tls := $config.coordinator.tls }}
{{- if .Values.tlsSecret }}
{{- range $field, $file := dict "certificateFile" "tls.crt" "keyFile" "tls.key" "authorityFile" "ca.crt" }}
{{- $_ := set $tls $field (printf "/etc/paceline-tls/%s" $file) }}
{{- end }}
{{- end }}
{{- if .Values.dashboardTlsSecret }}
{{- $_ := set $config.dashboard.tls "certificateFile" "/etc/paceline-dashboard-tls/tls.crt" }}
{{- $_ := set $config.dashboard.tls "keyFile" "/etc/paceline-dashboard-tls/tls.key" }}
{{- end }}
{{- if include "paceline.tls.own" . }}{{ $_ := set $tls "secret" (include "paceline.authority.name" .) }}{{ end }}
{{- range $field := list "secret" "certificateFile" "keyFile" "authorityFile" }}
{{- if not (get $tls $field) }}{{ $_ := unset $tls $field }}{{ end }}
{{- if not (get $config.dashboard.tls $field) }}{{ $_ := unset $config.dashboard.tls $field }}{{ end }}
{{- end }}
{{- if not $config.namespace }}{{ $_ := unset $config "namespace" }}{{ end }}
{{- if include "paceline.history" . }}
{{- $_ := set $config.dashboard.history "path" "/history/jobs.db" }}
{{- else }}
{{- $_ := unset $config.dashboard "history" }}
{{- end }}
{{- if not $config.dashboard.address }}{{ $_ := unset $config "dashboard" }}{{ end }}
{{- if not $config.trainer.image }}{{ $_ := unset $config "trainer" }}{{ end }}
{{- toYaml (merge (dict "apiVersion" "config.paceline.dev/v1alpha1" "kind" "ControllerConfiguration") $config) }}
{{- end }}
