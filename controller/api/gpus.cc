#include "controller/api/gpus.h"

#include <vector>

#include "controller/api/document.h"

namespace paceline::api {

bool is_gpu_limit(std::string_view name, std::string_view amount) {
  return (name == "nvidia.com/gpu" || name.starts_with("nvidia.com/mig-")) && amount != "0";
}

bool asks_for_gpus(const ReplicaSpec& role) {
  Document document;
  std::vector<Diagnostic> diagnostics;
  if (role.pod_template.empty() || !read_document(role.pod_template, document, diagnostics)) return false;
  const Node* node = &document.nodes[document.root];
  for (const char* const name : {"spec", "containers"}) {
    node = find_field(document, *node, name);
    if (node == nullptr) return false;
  }
  if (role.container_index >= node->children.size()) return false;
  node = &document.nodes[node->children[role.container_index]];
  for (const char* const name : {"resources", "limits"}) {
    node = find_field(document, *node, name);
    if (node == nullptr) return false;
  }
  for (std::size_t i = 0; node->kind == NodeKind::kMap && i < node->children.size(); i += 2) {
    const Node &key = document.nodes[node->children[i]], &value = document.nodes[node->children[i + 1]];
    if (is_gpu_limit(key.text, value.text)) return true;
  }
  return false;
}

}  // namespace paceline::api
