#pragma once

// YAML or JSON text as a tree whose every node knows its place. The only file that knows yaml-cpp. Pure;
// internal to controller/api.
//
// Bounded by the limits of parse.h. Nodes are numbered; an alias is the number of its anchor's node, so that
// sharing costs nothing here, and what walking it would cost is counted against kMaxNodes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "controller/api/diagnostic.h"

namespace paceline::api {

struct Position {
  int line = 1, column = 1;  // from 1; columns in bytes
  auto operator<=>(const Position&) const = default;
};

enum class NodeKind : std::uint8_t { kNull, kScalar, kList, kMap };

struct Node {
  NodeKind kind = NodeKind::kNull;
  Position at;
  std::string text;                   // kScalar
  bool quoted = false;                // kScalar: text by its quotes or tag, whatever it looks like
  std::vector<std::size_t> children;  // kList: items; kMap: key, value, key, value; keys are scalars
};

struct Document {
  std::vector<Node> nodes;
  std::size_t root = 0;
};

// True: `document` is the text's only document; `diagnostics` has an entry for each key that stands twice in
// a map (both are in the map). False: the last of `diagnostics` says why the text is refused, and `document`
// means nothing.
// Of an empty text it says that it is no `what`, which is `allowed`.
bool read_document(std::string_view text, Document& document, std::vector<Diagnostic>& diagnostics,
                   std::string_view what = "TrainingJob", std::string_view allowed = "a TrainingJob");

// The value of a map's first key of this name. Null: it has none, or is no map.
const Node* find_field(const Document& document, const Node& map, std::string_view name);

// Appends a node with all that is in it as YAML in one line, aliases written out, which reads back as the
// same. False where that makes `out` longer than `most` bytes: it is cut short then.
bool write_flow(const Document& document, std::size_t node, std::size_t most, std::string& out);

}  // namespace paceline::api
