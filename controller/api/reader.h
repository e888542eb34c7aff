#pragma once

// The visitor that fills a job from a document, field by field, and says what is wrong with each. Internal to
// controller/api.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/api/document.h"
#include "controller/api/fields.h"
#include "controller/api/findings.h"

namespace paceline::api {

class Reader final : public FieldVisitor {
 public:
  // Both must outlive the reader. REQUIRES: the document's root is a map.
  Reader(const Document& document, Findings& findings);

  // Ends the outermost map: what was not visited there is unknown.
  void finish() { end(); }

  bool begin(const Field& field, bool present) override;
  void end() override;
  bool whole(const Field& field, std::string& value) override;
  std::size_t begin_list(const Field& field, std::size_t size, CountRange count) override;
  bool begin_item(std::size_t index) override;
  void constant(const Field& field, std::string_view value) override;
  void text(const Field& field, TextKind kind, std::string& value) override;
  void flag(const Field& field, bool& value) override;
  void bytes(const Field& field, IntegerRange range, std::int64_t& value) override;
  void cores(const Field& field, bool zero, double& value) override;
  void integers(const Field& field, IntegerRange range, CountRange count,
                std::vector<std::int64_t>& value) override;
  void texts(const Field& field, TextKind kind, CountRange count, std::vector<std::string>& value) override;
  void labels(const Field& field, bool values_are_labels, std::map<std::string, std::string>& value) override;
  void parameters(const Field& field, std::map<std::string, std::string>& value) override;
  void reserved(const char* name, const char* advice) override;
  void ignored(const char* name) override;

 protected:
  std::optional<std::int64_t> on_integer(const Field& field, IntegerRange range,
                                         std::optional<std::int64_t> value) override;
  std::optional<double> on_number(const Field& field, NumberRange range,
                                  std::optional<double> value) override;
  std::optional<std::size_t> on_choice(const Field& field, std::span<const Choice> choices,
                                       std::optional<std::size_t> value) override;

 private:
  // A map or list that is being visited.
  struct Frame {
    const Node* node;
    Position at;  // of its key
    std::string path;
    std::vector<std::string> known = {};  // names visited, in any case as written in the table
    std::vector<bool> taken = {};         // by child pair: it was visited
    bool uncertain = false;               // a choice in it or around it is wrong: what applies is not known
    bool open = false;                    // what the table lacks is let through
    const char* key = "";                 // of a list: the field that tells its items apart
  };
  // A field's value, and where its key stands.
  struct Found {
    const Node* node;
    Position key;
    std::string path;
  };

  const Node& node(std::size_t index) const { return document_.nodes[index]; }
  std::string path_of(std::string_view name) const;
  Frame frame(const Node* node, Position at, std::string path) const;
  // The field's value if it stands in the text and is of this kind. Reports it if it is missing though
  // required, may not stand there, or is of another kind. A null map is a missing one, but for one that
  // asks for something when it is empty.
  std::optional<Found> find(const Field& field, NodeKind kind, std::string_view wanted);
  std::optional<std::size_t> take(const Field& field);
  void report(const Found& found, std::string problem, std::string_view allowed);
  std::string wanted_map(const Field& field) const;  // what is allowed where a map is
  std::vector<std::string> absent_names(const Frame& frame) const;
  void unknown_field(const Frame& frame, const Node& key);
  void report_same_keys(const Frame& list);
  void wrong_kind(const Found& found, std::string_view wanted);
  bool read_text(const Found& found, TextKind kind, std::string& value);
  bool read_integer(const Found& found, IntegerRange range, std::int64_t& value);
  // The items of a list field, or the lone value where that may stand for it. Empty where there is something
  // to report.
  std::vector<Found> items(const Field& field, CountRange count, std::string_view wanted);
  std::map<std::string, std::string> read_map(const Found& found, bool any_scalar);

  const Document& document_;
  Findings& findings_;
  std::vector<Frame> frames_;
};

// How a diagnostic shows a value: its text as written, or "a list", "a map", "nothing".
std::string show(const Node& node);

}  // namespace paceline::api
