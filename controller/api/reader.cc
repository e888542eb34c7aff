// The structure of a document: which fields stand where, and which should not. Their values are read in
// reader_values.cc.

#include "controller/api/reader.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "controller/api/parse.h"
#include "controller/api/reference.h"
#include "controller/api/suggest.h"

namespace paceline::api {

namespace {

constexpr std::string_view kRequired = "is required";

}  // namespace

std::string show(const Node& node) {
  switch (node.kind) {
    case NodeKind::kNull:
      return "nothing";
    case NodeKind::kList:
      return "a list";
    case NodeKind::kMap:
      return "a map";
    case NodeKind::kScalar:
      break;
  }
  const std::string quoted = quote(node.text);
  const bool bare = !node.quoted && !plain_scalar_type(node.text).empty();
  return bare ? quoted.substr(1, quoted.size() - 2) : quoted;
}

Reader::Reader(const Document& document, Findings& findings) : document_(document), findings_(findings) {
  const Node& root = node(document.root);
  frames_.push_back(frame(&root, root.at, ""));
}

std::string Reader::path_of(std::string_view name) const {
  const std::string& parent = frames_.back().path;
  return parent.empty() ? std::string(name) : str_cat(parent, ".", name);
}

Reader::Frame Reader::frame(const Node* node, Position at, std::string path) const {
  Frame made{.node = node, .at = at, .path = std::move(path)};
  made.taken.resize(node->children.size() / 2);
  made.uncertain = !frames_.empty() && frames_.back().uncertain;
  return made;
}

// The pair of the field in the current map, if it is there; a second one (of another case) is reported.
std::optional<std::size_t> Reader::take(const Field& field) {
  Frame& frame = frames_.back();
  frame.known.push_back(field.name);
  std::optional<std::size_t> taken;
  for (std::size_t pair = 0; pair < frame.taken.size(); ++pair) {
    const Node& key = node(frame.node->children[2 * pair]);
    const bool same = field.any_case ? equal_ignoring_case(key.text, field.name) : key.text == field.name;
    if (!same) continue;
    frame.taken[pair] = true;
    if (!taken) {
      taken = pair;
      continue;
    }
    const Position first = node(frame.node->children[2 * *taken]).at;
    // The same spelling twice has been reported already.
    if (key.text == node(frame.node->children[2 * *taken]).text) continue;
    findings_.add(
        key.at, path_of(field.name),
        str_cat("stands here a second time; the first, as \"", node(frame.node->children[2 * *taken]).text,
                "\", is at ", first.line, ":", first.column));
  }
  return taken;
}

std::optional<Reader::Found> Reader::find(const Field& field, NodeKind kind, std::string_view wanted) {
  const std::string path = path_of(field.name);
  const std::optional<std::size_t> pair = take(field);
  const Frame& frame = frames_.back();
  const Node* value = pair ? &node(frame.node->children[2 * *pair + 1]) : nullptr;
  const bool may_be_null = kind == NodeKind::kMap && !field.asks;
  const bool absent = value == nullptr || (may_be_null && value->kind == NodeKind::kNull);
  const bool judged = *field.when.only_with == '\0' || !frame.uncertain;
  if (absent) {
    if (field.required && field.when.applies && judged) {
      Diagnostic& d = findings_.add(value ? node(frame.node->children[2 * *pair]).at : frame.at, path,
                                    std::string(kRequired));
      d.found = value ? show(*value) : "";
      d.allowed = *field.if_missing == '\0' ? wanted : field.if_missing;
    }
    return std::nullopt;
  }
  Found found{value, node(frame.node->children[2 * *pair]).at, path};
  findings_.place(path,
                  value->kind == NodeKind::kMap || value->kind == NodeKind::kList ? found.key : value->at);
  if (!field.when.applies && judged) {
    findings_.add(found.key, path, "does not apply here").allowed =
        str_cat("only with ", field.when.only_with);
    return std::nullopt;
  }
  if (value->kind != kind) {
    wrong_kind(found, wanted);
    return std::nullopt;
  }
  return found;
}

void Reader::report(const Found& found, std::string problem, std::string_view allowed) {
  Diagnostic& d = findings_.add(found.node->at, found.path, std::move(problem));
  d.found = show(*found.node);
  d.allowed = allowed;
}

void Reader::wrong_kind(const Found& found, std::string_view wanted) {
  report(found, found.node->kind == NodeKind::kNull ? "has no value" : "wrong type", wanted);
}

std::string Reader::wanted_map(const Field& field) const {
  const std::vector<std::size_t>& children = frames_.back().node->children;
  for (std::size_t i = 0; i < children.size(); i += 2) {
    const Node& value = node(children[i + 1]);
    if (node(children[i]).text != field.name) continue;
    if (value.kind == NodeKind::kNull && field.asks) return "a map, with all defaults {}; or leave it out";
    if (*field.lone == '\0') continue;
    if (value.kind == NodeKind::kList) return str_cat("a map, as in {", field.lone, ": [...]}");
    if (value.kind == NodeKind::kScalar) return str_cat("a map, as in {", field.lone, ": ", show(value), "}");
  }
  return "a map";
}

bool Reader::begin(const Field& field, bool) {
  const std::optional<Found> found = find(field, NodeKind::kMap, wanted_map(field));
  if (!found) return false;
  frames_.push_back(frame(found->node, found->key, found->path));
  frames_.back().open = field.open;
  return true;
}

// Only looks: begin() takes it.
bool Reader::whole(const Field& field, std::string& value) {
  const std::vector<std::size_t>& children = frames_.back().node->children;
  for (std::size_t i = 0; i < children.size(); i += 2) {
    if (node(children[i]).text != field.name || node(children[i + 1]).kind != NodeKind::kMap) continue;
    value.clear();
    if (write_flow(document_, children[i + 1], kMaxTemplateBytes, value)) continue;
    findings_.add(node(children[i]).at, path_of(field.name), "too large").allowed =
        str_cat("at most ", kMaxTemplateBytes, " bytes");
  }
  return false;
}

void Reader::end() {
  const Frame ended = std::move(frames_.back());
  frames_.pop_back();
  if (ended.node->kind == NodeKind::kList && *ended.key != '\0') report_same_keys(ended);
  if (ended.node->kind != NodeKind::kMap || ended.open) return;
  for (std::size_t pair = 0; pair < ended.taken.size(); ++pair) {
    if (!ended.taken[pair]) unknown_field(ended, node(ended.node->children[2 * pair]));
  }
}

// The known names that this map lacks come first: one that it has is not meant again.
std::vector<std::string> Reader::absent_names(const Frame& frame) const {
  std::vector<std::string> names = frame.known;
  std::stable_partition(names.begin(), names.end(), [&](const std::string& name) {
    for (std::size_t i = 0; i < frame.node->children.size(); i += 2) {
      if (node(frame.node->children[i]).text == name) return false;
    }
    return true;
  });
  return names;
}

void Reader::unknown_field(const Frame& frame, const Node& key) {
  const std::string shown =
      text_rule_broken(TextKind::kCustomName, key.text).empty() ? key.text : quote(key.text);
  Diagnostic& d =
      findings_.add(key.at, frame.path.empty() ? shown : str_cat(frame.path, ".", shown), "unknown field");
  if (key.text == "<<") {
    d.problem = "merge keys are not supported";
    d.allowed = "an alias for a whole value, or the fields themselves";
    return;
  }
  d.suggestion = meant_name(key.text, absent_names(frame));
  if (d.suggestion.empty()) d.suggestion = path_of_field(key.text);
  for (const std::string& name : frame.known) d.allowed += str_cat(d.allowed.empty() ? "" : ", ", name);
  // A required field that was only misspelt is one error, not two.
  if (!d.suggestion.empty())
    findings_.drop(frame.path.empty() ? d.suggestion : str_cat(frame.path, ".", d.suggestion), kRequired);
}

std::size_t Reader::begin_list(const Field& field, std::size_t, CountRange count) {
  static const Node kNothing{.kind = NodeKind::kList};
  const std::optional<Found> found = find(field, NodeKind::kList, "a list of maps");
  const bool counted =
      found && found->node->children.size() >= count.min && found->node->children.size() <= count.max;
  if (found && !counted) {
    Diagnostic& d = findings_.add(found->key, found->path, "wrong number of items");
    d.found = str_cat(found->node->children.size());
    d.allowed = describe(count);
  }
  frames_.push_back(counted ? frame(found->node, found->key, found->path)
                            : frame(&kNothing, {}, path_of(field.name)));
  frames_.back().open = field.open;
  frames_.back().key = field.key;
  return frames_.back().node->children.size();
}

// Items that are no maps, or lack the field, have been reported already.
void Reader::report_same_keys(const Frame& list) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < list.node->children.size(); ++i) {
    const Node& item = node(list.node->children[i]);
    for (std::size_t child = 0; item.kind == NodeKind::kMap && child < item.children.size(); child += 2) {
      const Node& value = node(item.children[child + 1]);
      if (node(item.children[child]).text != list.key || value.kind != NodeKind::kScalar) continue;
      if (seen.insert(value.text).second) continue;
      Diagnostic& d =
          findings_.add(value.at, str_cat(list.path, "[", i, "].", list.key), "stands here a second time");
      d.found = show(value);
      d.allowed = str_cat("each ", list.key, " once");
    }
  }
}

bool Reader::begin_item(std::size_t index) {
  const Frame& list = frames_.back();
  const Node& item = node(list.node->children[index]);
  Found found{&item, item.at, str_cat(list.path, "[", index, "]")};
  findings_.place(found.path, item.at);
  if (item.kind != NodeKind::kMap) {
    wrong_kind(found, "a map");
    return false;
  }
  const bool open = list.open;
  frames_.push_back(frame(found.node, found.key, found.path));
  frames_.back().open = open;
  return true;
}

void Reader::constant(const Field& field, std::string_view value) {
  const std::optional<Found> found = find(field, NodeKind::kScalar, value);
  if (found && found->node->text != value) report(*found, "not supported", value);
}

void Reader::reserved(const char* name, const char* advice) {
  const std::optional<std::size_t> pair =
      take({.name = name, .any_case = frames_.back().path == "spec.replicaSpecs"});
  frames_.back().known.pop_back();
  if (!pair) return;
  const Node& key = node(frames_.back().node->children[2 * *pair]);
  findings_.add(key.at, path_of(name), str_cat("is not supported by this version of Paceline; ", advice));
}

void Reader::ignored(const char* name) {
  take({.name = name});
  frames_.back().known.pop_back();
}

}  // namespace paceline::api
