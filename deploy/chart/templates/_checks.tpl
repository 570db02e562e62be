{{- /* What helm cannot install is refused before anything is applied. */}}
{{- define "dogwatch.checks" -}}
{{- /* helm template, and so Argo CD, calls every rendering an installation. */}}
{{- if and .Release.IsInstall (not .Values.allowSharedNamespace) (ne .Values.admissionPolicies "off") (has .Release.Namespace (list "default" "kube-system")) }}
{{- fail (printf "namespace %s has pods of other software, and Dogwatch's admission policies let no coordinator evict a pod of Dogwatch's own namespace. Give Dogwatch a namespace of its own: --namespace dogwatch --create-namespace. If it is installed here already, and is rendered by helm template or Argo CD, set allowSharedNamespace to true" .Release.Namespace) }}
{{- end }}
{{- if and (ne .Values.admissionPolicies "off") (semverCompare "<1.32.0-0" .Capabilities.KubeVersion.Version) }}
{{- fail (printf "admissionPolicies need Kubernetes 1.32 or later, and this cluster is %s: before 1.32 a token does not name its node, so the policies would refuse every coordinator. Update Kubernetes, or set admissionPolicies to off" .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- if and .Values.remediation (semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version) }}
{{- fail (printf "remediation needs Kubernetes 1.30 or later, and this cluster is %s: older ones lack the admission policies that limit who may confirm that a host is off. Update Kubernetes" .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- if and .Values.coordinatorUnprivileged .Values.coordinatorKubeletIdentity }}
{{- fail "coordinatorUnprivileged and coordinatorKubeletIdentity exclude each other: only root can read the kubelet's key. Set one of them to false" }}
{{- end }}
{{- if and .Values.web (not .Values.peopleRoles) }}
{{- fail "web needs peopleRoles: the dashboard reads the cluster by role dogwatch-viewer. Set peopleRoles to true, or web to false" }}
{{- end }}
{{- end }}
