#include "controller/api/parse.h"

#include <utility>

#include "base/text.h"
#include "controller/api/document.h"
#include "controller/api/findings.h"
#include "controller/api/reader.h"
#include "controller/api/rules.h"
#include "controller/api/source_text.h"

// Four passes, each on what the one before let through: bytes (source_text.h), syntax (document.h), fields
// one by one (fields.h, reader.h), rules over several fields (rules.h). The first two stop at the first thing
// wrong; the last two report all.

namespace paceline::api {

namespace {

Parsed refused(Diagnostic diagnostic, std::string_view file_name) {
  diagnostic.file = file_name;
  return {std::nullopt, {std::move(diagnostic)}};
}

// Defaults that depend on other fields; the rest are the initial values in types.h.
void fill_defaults(TrainingJob& job) {
  if (!job.spec.training) return;
  Evaluation& e = job.spec.training->evaluation;
  if (may_have_held_out_data(job.spec.training->data) && !e.every_steps && !e.every_epochs)
    e.every_epochs = 1;
}

}  // namespace

Parsed parse_training_job(std::string_view text, std::string_view file_name) {
  if (auto unreadable = check_source_text(text)) return refused(*std::move(unreadable), file_name);
  Document document;
  std::vector<Diagnostic> duplicates;
  if (!read_document(skip_byte_order_mark(text), document, duplicates))
    return refused(std::move(duplicates.back()), file_name);
  const Node& root = document.nodes[document.root];
  if (root.kind != NodeKind::kMap) {
    Diagnostic d{.line = root.at.line, .column = root.at.column, .problem = "the file holds no TrainingJob"};
    d.found = show(root);
    d.allowed = "a map with apiVersion, kind, metadata and spec";
    return refused(std::move(d), file_name);
  }
  Findings findings;
  for (Diagnostic& d : duplicates) findings.add(std::move(d));
  Parsed parsed{.job = TrainingJob{}};
  Reader reader(document, findings);
  visit(reader, *parsed.job);
  reader.finish();
  check_rules(*parsed.job, findings);
  fill_defaults(*parsed.job);
  parsed.diagnostics = findings.take(file_name);
  for (Diagnostic& d : parsed.diagnostics) {
    const std::string at = beyond_ascii(skip_byte_order_mark(text), d.line, d.column, message(d));
    if (!at.empty()) d.found += str_cat(d.found.empty() ? "" : " with ", at);
  }
  if (has_errors(parsed.diagnostics)) parsed.job.reset();
  return parsed;
}

}  // namespace paceline::api
