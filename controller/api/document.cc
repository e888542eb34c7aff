#include "controller/api/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "controller/api/parse.h"
#include "controller/api/scalars.h"
#include "controller/api/source_text.h"

// Idea: yaml-cpp's events, not its node tree: events come while the text is read, carry their place, and can
// be refused one by one. Refusing means throwing the library's own exception, which is caught below, in the
// same file.

namespace paceline::api {

namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

Position position_of(const YAML::Mark& mark) {
  return mark.is_null() ? Position{} : Position{mark.line + 1, mark.column + 1};
}

Diagnostic diagnostic_at(Position at, std::string problem, std::string found = {}, std::string allowed = {}) {
  Diagnostic d;
  d.line = at.line;
  d.column = at.column;
  d.problem = std::move(problem);
  d.found = std::move(found);
  d.allowed = std::move(allowed);
  return d;
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view source, Document& document, std::vector<Diagnostic>& diagnostics)
      : source_(source), document_(document), diagnostics_(diagnostics) {}

  // Whether a document that holds something was read.
  bool found() const { return found_; }
  // Whether the builder itself stopped the parser, and said why.
  bool refused() const { return refused_; }

  void OnDocumentStart(const YAML::Mark&) override {
    anchors_.clear();
    root_ = kNone;
  }
  void OnDocumentEnd() override {
    if (root_ == kNone || document_.nodes[root_].kind == NodeKind::kNull) return;
    document_.root = root_;
    found_ = true;
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    attach(create(NodeKind::kNull, mark, anchor, ""));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(NodeKind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(NodeKind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override {
    report_duplicate_keys(document_.nodes[open_.back()]);
    close();
  }

 private:
  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& problem, std::string found,
                           std::string allowed) {
    diagnostics_.push_back(diagnostic_at(position_of(mark), problem, std::move(found), std::move(allowed)));
    refused_ = true;
    throw YAML::ParserException(mark, problem);
  }

  std::size_t create(NodeKind kind, const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& tag);
  void attach(std::size_t node);
  void open(NodeKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor);
  void close();
  void count(const YAML::Mark& mark, std::size_t nodes);
  void refuse_unterminated(const YAML::Mark& mark);
  void report_duplicate_keys(const Node& map);

  const std::string_view source_;
  Document& document_;
  std::vector<Diagnostic>& diagnostics_;
  std::vector<std::size_t> weights_;  // of each node: how many nodes walking it meets, aliases followed
  std::vector<std::size_t> open_;
  std::map<YAML::anchor_t, std::size_t> anchors_;
  std::size_t total_ = 0;
  std::size_t root_ = kNone;
  bool found_ = false;
  bool refused_ = false;
};

void TreeBuilder::count(const YAML::Mark& mark, std::size_t nodes) {
  total_ += nodes;
  if (total_ > kMaxNodes) {
    refuse(mark, "the file holds too much", "",
           str_cat("at most ", kMaxNodes, " values, aliases counted with all they stand for"));
  }
}

std::size_t TreeBuilder::create(NodeKind kind, const YAML::Mark& mark, YAML::anchor_t anchor,
                                const std::string& tag) {
  const bool empty_document = kind == NodeKind::kNull && open_.empty();
  if (found_ && !empty_document)
    refuse(mark, "a second document", "",
           "one TrainingJob in a file; put the others into files of their own");
  if (!tag.empty() && tag != "?" && tag != "!" && tag != "tag:yaml.org,2002:str") {
    refuse(mark, "a YAML tag", tag, "no tags but !!str");
  }
  count(mark, 1);
  const std::size_t index = document_.nodes.size();
  document_.nodes.push_back({.kind = kind, .at = position_of(mark)});
  weights_.push_back(1);
  if (anchor != 0) anchors_[anchor] = index;
  return index;
}

void TreeBuilder::attach(std::size_t node) {
  if (open_.empty()) {
    root_ = node;
    return;
  }
  Node& parent = document_.nodes[open_.back()];
  const bool is_map = parent.kind == NodeKind::kMap;
  const bool is_key = is_map && parent.children.size() % 2 == 0;
  Node& child = document_.nodes[node];
  if (is_key && child.kind != NodeKind::kScalar) {
    YAML::Mark mark;
    mark.line = child.at.line - 1;
    mark.column = child.at.column - 1;
    refuse(mark, "a key that is no text", "", "a field's name");
  }
  // yaml-cpp reports a missing value where the next token stands.
  if (child.kind == NodeKind::kNull)
    child.at = is_map ? document_.nodes[parent.children.back()].at : parent.at;
  parent.children.push_back(node);
  weights_[open_.back()] += weights_[node];
}

void TreeBuilder::OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) {
  const auto found = anchors_.find(anchor);
  const bool is_open =
      found != anchors_.end() && std::find(open_.begin(), open_.end(), found->second) != open_.end();
  if (found == anchors_.end() || is_open) refuse(mark, "an alias inside what it stands for", "", "no cycles");
  count(mark, weights_[found->second]);
  attach(found->second);
}

void TreeBuilder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                           const std::string& value) {
  if (tag == "!") refuse_unterminated(mark);
  const std::size_t index = create(NodeKind::kScalar, mark, anchor, tag);
  document_.nodes[index].text = value;
  document_.nodes[index].quoted = tag != "?";
  attach(index);
}

void TreeBuilder::open(NodeKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
  if (open_.size() >= static_cast<std::size_t>(kMaxDepth)) {
    refuse(mark, "nested too deeply", "",
           str_cat("at most ", kMaxDepth, " lists and maps inside one another"));
  }
  // Attached when it is closed: its weight is known then, and an alias to it before that is a cycle. Its
  // place among its parent's children is the same.
  open_.push_back(create(kind, mark, anchor, tag));
}

void TreeBuilder::close() {
  const std::size_t node = open_.back();
  open_.pop_back();
  attach(node);
}

// yaml-cpp takes a quoted text that ends with the file for a whole one.
void TreeBuilder::refuse_unterminated(const YAML::Mark& mark) {
  auto at = static_cast<std::size_t>(mark.pos);
  while (at < source_.size() && (source_[at] == '&' || source_[at] == '!')) {
    at = source_.find_first_of(" \t\r\n", at);
    at = source_.find_first_not_of(" \t\r\n", at);
  }
  if (at >= source_.size() || (source_[at] != '"' && source_[at] != '\'')) return;
  const char quote = source_[at];
  for (++at; at < source_.size(); ++at) {
    if (quote == '"' && source_[at] == '\\') {
      ++at;
    } else if (source_[at] == quote) {
      if (quote == '"' || at + 1 >= source_.size() || source_[at + 1] != quote) return;
      ++at;
    }
  }
  refuse(mark, "a quoted text without an end", "", "");
}

void TreeBuilder::report_duplicate_keys(const Node& map) {
  std::map<std::string_view, Position> seen;
  for (std::size_t i = 0; i < map.children.size(); i += 2) {
    const Node& key = document_.nodes[map.children[i]];
    const auto [first, inserted] = seen.emplace(key.text, key.at);
    if (inserted) continue;
    diagnostics_.push_back(diagnostic_at(
        key.at, str_cat("\"", key.text.substr(0, 64), "\" stands here a second time; the first is at ",
                        first->second.line, ":", first->second.column)));
  }
}

// Blanks, ':', ',', dashes and quotes of others than ASCII.
constexpr std::string_view kLookAlikes =
    "\u00a0\u2002\u2003\u2009\u200b\u202f\u3000\ufeff\uff1a\uff0c\u2010\u2011\u2013\u2014\u2212\u2018\u2019"
    "\u201c\u201d";

// What yaml-cpp says, in words that help.
Diagnostic syntax_error(const YAML::Exception& error, std::string_view text) {
  Position at = position_of(error.mark);
  std::string allowed;
  // The error may show only after the line that caused it: look for a tab in the indentation of this line and
  // the one before.
  std::size_t start = 0;
  for (int line = 1; line <= at.line && start < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::size_t indent = text.substr(start, end - start).find_first_not_of(" \t");
    const std::size_t tab = text.substr(start, end - start).find('\t');
    if (line >= at.line - 1 && tab != std::string_view::npos &&
        (indent == std::string_view::npos || tab < indent)) {
      return diagnostic_at({line, static_cast<int>(tab) + 1}, "a tab in the indentation", "", "spaces");
    }
    start = end + 1;
  }
  static constexpr std::pair<std::string_view, std::string_view> kHints[] = {
      {"illegal map value",
       "one \"name: value\" here; text that holds \": \" goes in quotes, and fields of one map are indented "
       "alike"},
      {"end of map not found", "fields of one map, indented alike"},
      {"end of sequence not found", "items of one list, indented alike"},
      {"end of map flow not found", "'}' at the end of a map that began with '{'"},
      {"end of sequence flow not found", "']' at the end of a list that began with '['"},
      {"unknown token", "text; in quotes where it begins with @, ` or %"},
  };
  for (const auto& [message, hint] : kHints) {
    if (error.msg == message) allowed = hint;
  }
  std::string found = at.line > 1 ? beyond_ascii(text, at.line - 1, 1, kLookAlikes) : "";
  if (found.empty()) found = beyond_ascii(text, at.line, 1, kLookAlikes);
  return diagnostic_at(at, str_cat("not YAML: ", error.msg), found, allowed);
}

}  // namespace

const Node* find_field(const Document& document, const Node& map, std::string_view name) {
  for (std::size_t i = 0; map.kind == NodeKind::kMap && i < map.children.size(); i += 2) {
    if (document.nodes[map.children[i]].text == name) return &document.nodes[map.children[i + 1]];
  }
  return nullptr;
}

bool write_flow(const Document& document, std::size_t index, std::size_t most, std::string& out) {
  const Node& node = document.nodes[index];
  // Whatever is no text in some YAML consists of these; all else may be quoted.
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("+-._~").find(c) != std::string_view::npos;
  };
  const bool map = node.kind == NodeKind::kMap;
  if (node.kind == NodeKind::kNull) {
    out += "null";
  } else if (node.kind == NodeKind::kScalar) {
    const bool bare = !node.quoted && !node.text.empty() && std::ranges::all_of(node.text, plain);
    out += bare ? node.text : quoted_text(node.text);
  } else {
    out += map ? "{" : "[";
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      if (i > 0) out += map && i % 2 == 1 ? ": " : ", ";
      if (!write_flow(document, node.children[i], most, out)) return false;
    }
    out += map ? "}" : "]";
  }
  return out.size() <= most;
}

bool read_document(std::string_view text, Document& document, std::vector<Diagnostic>& diagnostics,
                   std::string_view what, std::string_view allowed) {
  TreeBuilder builder(text, document, diagnostics);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    if (!builder.refused()) diagnostics.push_back(syntax_error(error, text));
    return false;
  }
  if (builder.found()) return true;
  diagnostics.push_back(
      diagnostic_at({}, str_cat("the file holds no ", what), "nothing", std::string(allowed)));
  return false;
}

}  // namespace paceline::api
