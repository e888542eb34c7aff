#include "controller/api/read_fields.h"

#include "base/text.h"
#include "controller/api/document.h"
#include "controller/api/findings.h"
#include "controller/api/reader.h"
#include "controller/api/source_text.h"

namespace paceline::api {

namespace {

std::vector<Diagnostic> refused(Diagnostic diagnostic, std::string_view file_name) {
  diagnostic.file = file_name;
  return {std::move(diagnostic)};
}

}  // namespace

std::vector<Diagnostic> read_fields(std::string_view text, std::string_view file_name,
                                    const FieldsOf& fields) {
  if (auto unreadable = check_source_text(text)) return refused(*std::move(unreadable), file_name);
  Document document;
  std::vector<Diagnostic> duplicates;
  if (!read_document(skip_byte_order_mark(text), document, duplicates, fields.what, fields.allowed)) {
    return refused(std::move(duplicates.back()), file_name);
  }
  const Node& root = document.nodes[document.root];
  if (root.kind != NodeKind::kMap) {
    Diagnostic d{.line = root.at.line, .column = root.at.column};
    d.problem = str_cat("the file holds no ", fields.what);
    d.found = show(root);
    d.allowed = fields.allowed;
    return refused(std::move(d), file_name);
  }
  Findings findings;
  for (Diagnostic& d : duplicates) findings.add(std::move(d));
  Reader reader(document, findings);
  fields.visit(reader);
  reader.finish();
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
