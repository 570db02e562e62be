//! The kustomize components that are values of the chart. A test of the CLI compares both: what `kubectl kustomize` makes of the
//! component is what helm renders with the value.

use std::ops::Range;

const UNPRIVILEGED: &str = ".Values.coordinatorUnprivileged";
const KUBELET_IDENTITY: &str = ".Values.coordinatorKubeletIdentity";
const ON_CONTROL_PLANE: &str = ".Values.controllerOnControlPlane";

const UNPRIVILEGED_POD: &str = "\
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault";
const UNPRIVILEGED_CONTAINER: &str = "\
securityContext:
  privileged: false
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]";
const UNPRIVILEGED_ARGS: &str = "\
- --reboot-method=logind
- --sentinel=/run/dogwatch/reboot-needed";
const UNPRIVILEGED_MOUNTS: &str = "\
volumeMounts:
  - name: sentinel
    mountPath: /host/run/dogwatch
    readOnly: true
  - name: system-bus
    mountPath: /host/run/dbus/system_bus_socket
    readOnly: true";
const UNPRIVILEGED_VOLUMES: &str = "\
volumes:
  - name: sentinel
    hostPath:
      path: /run/dogwatch
      type: Directory
  - name: system-bus
    hostPath:
      path: /run/dbus/system_bus_socket
      type: Socket";
const KUBELET_MOUNT: &str = "\
- name: kubelet-certificate
  mountPath: /host/var/lib/kubelet/pki
  readOnly: true";
const KUBELET_VOLUME: &str = "\
- name: kubelet-certificate
  hostPath:
    path: /var/lib/kubelet/pki
    type: Directory";
const CONTROL_PLANE_NODES: &str = "\
nodeSelector:
  node-role.kubernetes.io/control-plane: \"\"";

/// Rights that the kubelet's identity has in place of the coordinators' account.
const RIGHTS_OF_ACCOUNT: [&str; 2] = ["kind: ClusterRole", "kind: ClusterRoleBinding"];

/// A document of the manifests with the conditions of the overlays in it.
pub fn add_overlays(document: &str) -> String {
    let mut text = ManifestText(document.lines().map(str::to_owned).collect());
    if text.has_head("kind: DaemonSet", "dogwatch-coordinator") {
        text.make_unprivileged();
        text.add_kubelet_identity();
    } else if text.has_head("kind: Deployment", "dogwatch-controller") {
        text.insert_after(
            "serviceAccountName: dogwatch-controller",
            ON_CONTROL_PLANE,
            CONTROL_PLANE_NODES,
            0,
        );
    } else if RIGHTS_OF_ACCOUNT
        .iter()
        .any(|kind| text.has_head(kind, "dogwatch-coordinator-node"))
    {
        text.0
            .insert(0, format!("{{{{- if not {KUBELET_IDENTITY} }}}}"));
        text.0.push("{{- end }}".to_owned());
    }
    text.0.join("\n")
}

struct ManifestText(Vec<String>);

impl ManifestText {
    fn has_head(&self, kind: &str, name: &str) -> bool {
        let name = format!("  name: {name}");
        let has = |wanted: &str| self.0.iter().any(|line| line == wanted);
        has(kind) && has(&name)
    }

    fn make_unprivileged(&mut self) {
        self.insert_after(
            "serviceAccountName: dogwatch-coordinator",
            UNPRIVILEGED,
            UNPRIVILEGED_POD,
            0,
        );
        self.replace_block("securityContext:", 10, UNPRIVILEGED_CONTAINER);
        self.replace_block("volumeMounts:", 10, UNPRIVILEGED_MOUNTS);
        self.replace_block("volumes:", 6, UNPRIVILEGED_VOLUMES);
        self.insert_after("- --host-root=/host", UNPRIVILEGED, UNPRIVILEGED_ARGS, 0);
        let host_pid = self.find_block("hostPID: true", 6);
        let indent = " ".repeat(6);
        self.0
            .insert(host_pid.end, format!("{indent}{{{{- end }}}}"));
        self.0.insert(
            host_pid.start,
            format!("{indent}{{{{- if not {UNPRIVILEGED} }}}}"),
        );
    }

    fn add_kubelet_identity(&mut self) {
        self.insert_after(
            "- --host-root=/host",
            KUBELET_IDENTITY,
            "- --identity=kubelet",
            0,
        );
        // The last lines of the blocks in the manifest.
        self.insert_after(
            "mountPropagation: HostToContainer",
            KUBELET_IDENTITY,
            KUBELET_MOUNT,
            -2,
        );
        self.insert_after_block("- name: run", 8, KUBELET_VOLUME);
    }

    /// Adds a part under a condition below this line, as deep as the line; `shift` moves it.
    fn insert_after(&mut self, line: &str, condition: &str, part: &str, shift: isize) {
        let at = self.0.iter().position(|it| it.trim() == line);
        let at = at.unwrap_or_else(|| panic!("the manifest has no line {line}"));
        let depth = depth_of(&self.0[at]).saturating_add_signed(shift);
        let lines = conditional_lines(condition, part, depth);
        self.0.splice(at + 1..=at, lines);
    }

    fn insert_after_block(&mut self, head: &str, depth: usize, part: &str) {
        let block = self.find_block(head, depth);
        let lines = conditional_lines(KUBELET_IDENTITY, part, depth);
        self.0.splice(block.end..block.end, lines);
    }

    /// Puts a part in the place of a block where the coordinator has no privileges.
    fn replace_block(&mut self, head: &str, depth: usize, part: &str) {
        let block = self.find_block(head, depth);
        let indent = " ".repeat(depth);
        let mut lines = vec![format!("{indent}{{{{- if {UNPRIVILEGED} }}}}")];
        lines.extend(part.lines().map(|line| format!("{indent}{line}")));
        lines.push(format!("{indent}{{{{- else }}}}"));
        lines.extend(self.0[block.clone()].iter().cloned());
        lines.push(format!("{indent}{{{{- end }}}}"));
        self.0.splice(block, lines);
    }

    /// The line with this head, and the deeper ones below it.
    fn find_block(&self, head: &str, depth: usize) -> Range<usize> {
        let is_head = |line: &String| line.trim() == head && depth_of(line) == depth;
        let start = self.0.iter().position(is_head);
        let start = start.unwrap_or_else(|| panic!("the manifest has no block {head}"));
        let below = self.0[start + 1..]
            .iter()
            .take_while(|line| depth_of(line) > depth);
        start..start + 1 + below.count()
    }
}

fn conditional_lines(condition: &str, part: &str, depth: usize) -> Vec<String> {
    let indent = " ".repeat(depth);
    let mut lines = vec![format!("{indent}{{{{- if {condition} }}}}")];
    lines.extend(part.lines().map(|line| format!("{indent}{line}")));
    lines.push(format!("{indent}{{{{- end }}}}"));
    lines
}

fn depth_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_replaced_under_its_condition_and_the_rest_stays() {
        let mut text = ManifestText(
            "a:\n  b:\n    - c\n  d: e"
                .lines()
                .map(str::to_owned)
                .collect(),
        );
        text.replace_block("b:", 2, "b: []");
        let expected = "a:\n  {{- if .Values.coordinatorUnprivileged }}\n  b: []\n  {{- else }}\n  b:\n    - c\n  {{- end }}\n  d: e";
        assert_eq!(text.0.join("\n"), expected);
    }

    #[test]
    fn other_documents_stay_as_they_are() {
        let document = "kind: ClusterRole\nmetadata:\n  name: dogwatch-viewer";
        assert_eq!(add_overlays(document), document);
        let rights = document.replace("viewer", "coordinator-node");
        assert!(add_overlays(&rights).starts_with("{{- if not"));
    }
}
