// The values of fields: scalars, and lists and maps of scalars.

#include <utility>

#include "base/text.h"
#include "controller/api/reader.h"
#include "controller/api/suggest.h"

namespace paceline::api {

namespace {

std::string describe_bytes(IntegerRange range) {
  return str_cat(describe(range), ", or with a suffix k, M, G, Ki, Mi, Gi");
}

}  // namespace

bool Reader::read_text(const Found& found, TextKind kind, std::string& value) {
  const Node& node = *found.node;
  if (node.kind != NodeKind::kScalar) {
    wrong_kind(found, "text");
    return false;
  }
  const std::string_view type = node.quoted ? "" : plain_scalar_type(node.text);
  if (!type.empty()) {
    report(found, str_cat("without quotes this is ", type, ", not text"), str_cat("\"", node.text, "\""));
    return false;
  }
  const std::string_view broken = text_rule_broken(kind, node.text);
  if (!broken.empty()) {
    report(found, "not allowed", broken);
    return false;
  }
  value = node.text;
  return true;
}

void Reader::text(const Field& field, TextKind kind, std::string& value) {
  const std::optional<Found> found = find(field, NodeKind::kScalar, "text");
  if (!found || read_text(*found, kind, value)) return;
  const bool label =
      kind == TextKind::kJobName || kind == TextKind::kNamespace || kind == TextKind::kContainerName;
  if (!label) return;
  const std::string& text = found->node->text;
  Diagnostic& d = findings_.last();
  std::string nearest = as_dns_label(text, kind == TextKind::kJobName ? 50 : 63);
  // A suggestion would look like what was found: the rule tells the limit.
  if (as_dns_label(text, text.size()) == text && nearest != text) {
    d.found += str_cat(" (", text.size(), " characters)");
  } else {
    d.suggestion = std::move(nearest);
  }
}

void Reader::flag(const Field& field, bool& value) {
  const std::optional<Found> found = find(field, NodeKind::kScalar, "true or false");
  if (!found) return;
  const Node& node = *found->node;
  const bool is_true = node.text == "true", is_false = node.text == "false";
  if (node.quoted || (!is_true && !is_false)) {
    report(*found, "wrong type", node.quoted ? "true or false, without quotes" : "true or false");
    return;
  }
  value = is_true;
}

bool Reader::read_integer(const Found& found, IntegerRange range, std::int64_t& value) {
  const Node& node = *found.node;
  const std::string wanted = str_cat("a whole number, ", describe(range));
  if (node.kind != NodeKind::kScalar) {
    wrong_kind(found, wanted);
    return false;
  }
  std::int64_t read = 0;
  const ScalarError error = parse_integer(node.text, read);
  if (node.quoted || error == ScalarError::kWrongForm) {
    report(found, "wrong type",
           node.quoted && error != ScalarError::kWrongForm ? str_cat(wanted, ", without quotes") : wanted);
    return false;
  }
  if (error == ScalarError::kTooLarge || !contains(range, read)) {
    report(found, "out of range", describe(range));
    return false;
  }
  value = read;
  return true;
}

std::optional<std::int64_t> Reader::on_integer(const Field& field, IntegerRange range,
                                               std::optional<std::int64_t> value) {
  const std::optional<Found> found =
      find(field, NodeKind::kScalar, str_cat("a whole number, ", describe(range)));
  std::int64_t read = 0;
  if (found && read_integer(*found, range, read)) value = read;
  return value;
}

std::optional<double> Reader::on_number(const Field& field, NumberRange range, std::optional<double> value) {
  const std::optional<Found> found = find(field, NodeKind::kScalar, str_cat("a number ", describe(range)));
  if (!found) return value;
  double read = 0;
  const ScalarError error = parse_number(found->node->text, read);
  if (found->node->quoted || error == ScalarError::kWrongForm) {
    const std::string_view quotes =
        found->node->quoted && error != ScalarError::kWrongForm ? ", without quotes" : "";
    report(*found, "wrong type", str_cat("a number ", describe(range), quotes));
  } else if (error == ScalarError::kTooLarge || !contains(range, read)) {
    report(*found, "out of range", describe(range));
  } else {
    value = read;
  }
  return value;
}

void Reader::bytes(const Field& field, IntegerRange range, std::int64_t& value) {
  const std::optional<Found> found = find(field, NodeKind::kScalar, describe_bytes(range));
  if (!found) return;
  std::int64_t read = 0;
  const ScalarError error = parse_bytes(found->node->text, read);
  if (error == ScalarError::kWrongForm) {
    report(*found, "not a number of bytes", describe_bytes(range));
  } else if (error == ScalarError::kTooLarge || !contains(range, read)) {
    report(*found, "out of range", describe(range));
  } else {
    value = read;
  }
}

void Reader::cores(const Field& field, bool zero, double& value) {
  const std::string_view allowed = zero ? "processor cores from 0 to 1024: 2, 1.5, 500m"
                                        : "processor cores above 0 and at most 1024: 2, 1.5, 500m";
  const std::optional<Found> found = find(field, NodeKind::kScalar, allowed);
  if (!found) return;
  double read = 0;
  const bool wrong = parse_cores(found->node->text, read) != ScalarError::kNone;
  if (wrong || !(zero ? read >= 0 : read > 0) || !(read <= 1024)) {
    report(*found, "not a number of cores", allowed);
    return;
  }
  value = read;
}

std::optional<std::size_t> Reader::on_choice(const Field& field, std::span<const Choice> choices,
                                             std::optional<std::size_t> value) {
  const std::optional<Found> found = find(field, NodeKind::kScalar, describe(choices));
  if (!found) {
    frames_.back().uncertain |= !findings_.clean(path_of(field.name));
    return value;
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (found->node->text == choices[i].name && !choices[i].reserved) return i;
    if (found->node->text == choices[i].name) {
      report(*found, "not supported by this version of Paceline", describe(choices));
      frames_.back().uncertain = true;
      return value;
    }
    if (!choices[i].reserved) names.push_back(choices[i].name);
  }
  report(*found, "unknown value", describe(choices));
  findings_.last().suggestion = meant_name(found->node->text, names);
  frames_.back().uncertain = true;
  return value;
}

std::vector<Reader::Found> Reader::items(const Field& field, CountRange count, std::string_view wanted) {
  const std::string path = path_of(field.name);
  const Frame& frame = frames_.back();
  const auto is_lone = [&](std::size_t pair) {
    return count.lone_item && node(frame.node->children[2 * pair]).text == field.name &&
           node(frame.node->children[2 * pair + 1]).kind == NodeKind::kScalar;
  };
  for (std::size_t pair = 0; pair < frame.taken.size(); ++pair) {
    if (!is_lone(pair)) continue;
    const std::optional<Found> lone = find(field, NodeKind::kScalar, wanted);
    return lone ? std::vector<Found>{*lone} : std::vector<Found>{};
  }
  const std::optional<Found> list = find(field, NodeKind::kList, wanted);
  if (!list) return {};
  const std::size_t size = list->node->children.size();
  if (size < count.min || size > count.max) {
    Diagnostic& d = findings_.add(list->key, list->path, "wrong number of items");
    d.found = str_cat(size);
    d.allowed = describe(count);
    return {};
  }
  std::vector<Found> found;
  for (std::size_t i = 0; i < size; ++i) {
    const Node& item = node(list->node->children[i]);
    found.push_back({&item, item.at, str_cat(path, "[", i, "]")});
    findings_.place(found.back().path, item.at);
  }
  return found;
}

void Reader::integers(const Field& field, IntegerRange range, CountRange count,
                      std::vector<std::int64_t>& value) {
  std::vector<std::int64_t> read;
  for (const Found& item : items(field, count, "a list of whole numbers")) {
    std::int64_t number = 0;
    if (read_integer(item, range, number)) read.push_back(number);
  }
  if (!read.empty()) value = std::move(read);
}

void Reader::texts(const Field& field, TextKind kind, CountRange count, std::vector<std::string>& value) {
  std::vector<std::string> read;
  for (const Found& item :
       items(field, count, count.lone_item ? "a text or a list of texts" : "a list of texts")) {
    std::string text;
    if (read_text(item, kind, text)) read.push_back(std::move(text));
  }
  if (!read.empty()) value = std::move(read);
}

std::map<std::string, std::string> Reader::read_map(const Found& found, bool any_scalar) {
  std::map<std::string, std::string> read;
  const std::vector<std::size_t>& children = found.node->children;
  for (std::size_t i = 0; i < children.size(); i += 2) {
    const Node& key = node(children[i]);
    const Found value{&node(children[i + 1]), key.at, str_cat(found.path, "[", quote(key.text), "]")};
    std::string text;
    if (!any_scalar) {
      if (!read_text(value, TextKind::kAny, text)) continue;
    } else if (value.node->kind == NodeKind::kScalar) {
      text = value.node->text;
    } else {
      wrong_kind(value, "text, a number, true or false");
      continue;
    }
    findings_.place(value.path, value.node->at);
    read.emplace(key.text, std::move(text));
  }
  return read;
}

void Reader::labels(const Field& field, bool values_are_labels, std::map<std::string, std::string>& value) {
  const std::optional<Found> found = find(field, NodeKind::kMap, "a map of texts");
  if (!found) return;
  value = read_map(*found, false);
  for (const auto& [key, text] : value) {
    const std::string path = str_cat(found->path, "[", quote(key), "]");
    const std::string_view key_rule = label_key_rule_broken(key);
    const std::string_view value_rule = values_are_labels ? label_value_rule_broken(text) : "";
    if (key_rule.empty() && value_rule.empty()) continue;
    Diagnostic& d = findings_.add(path, key_rule.empty() ? "value not allowed" : "name not allowed");
    d.found = quote(key_rule.empty() ? text : key);
    d.allowed = key_rule.empty() ? value_rule : key_rule;
  }
}

void Reader::parameters(const Field& field, std::map<std::string, std::string>& value) {
  const std::optional<Found> found = find(field, NodeKind::kMap, "a map of scalars");
  if (found) value = read_map(*found, true);
}

}  // namespace paceline::api
