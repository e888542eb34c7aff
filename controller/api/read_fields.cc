#include "controller/api/read_fields.h"

#include "base/text.h"
#include "controller/api/document.h"
#include "controller/api/findings.h"
#include "controller/api/reader.h"
#include "controller/api/source_text.h"

namespace paceline::api {

bool read_fields(std::string_view text, const char* what, const char* allowed,
                 const std::function<void(FieldVisitor&)>& visit, Findings& findings) {
  if (auto unreadable = check_source_text(text)) {
    findings.add(*std::move(unreadable));
    return false;
  }
  Document document;
  std::vector<Diagnostic> duplicates;
  if (!read_document(skip_byte_order_mark(text), document, duplicates, what, allowed)) {
    findings.add(std::move(duplicates.back()));
    return false;
  }
  const Node& root = document.nodes[document.root];
  if (root.kind != NodeKind::kMap) {
    Diagnostic& d = findings.add(root.at, "", str_cat("the file holds no ", what));
    d.found = show(root);
    d.allowed = allowed;
    return false;
  }
  for (Diagnostic& d : duplicates) findings.add(std::move(d));
  Reader reader(document, findings);
  visit(reader);
  reader.finish();
  return true;
}

std::vector<Diagnostic> read_fields(std::string_view text, std::string_view file_name,
                                    const FieldsOf& fields) {
  Findings findings;
  read_fields(text, fields.what, fields.allowed, fields.visit, findings);
  std::vector<Diagnostic> found = findings.take(file_name);
  if (has_errors(found)) return found;
  auto [path, problem] = fields.check();
  if (problem.empty()) return found;
  Findings more = std::move(findings);  // it knows the places
  more.add(path, std::move(problem));
  for (Diagnostic& d : more.take(file_name)) found.push_back(std::move(d));
  return found;
}

}  // namespace paceline::api
