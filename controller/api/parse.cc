#include "controller/api/parse.h"

#include <utility>

#include "base/text.h"
#include "controller/api/findings.h"
#include "controller/api/read_fields.h"
#include "controller/api/rules.h"
#include "controller/api/source_text.h"

// Four passes, each on what the one before let through: bytes (source_text.h), syntax (document.h), fields
// one by one (fields.h, reader.h), rules over several fields (rules.h). The first two stop at the first thing
// wrong; the last two report all.

namespace paceline::api {

namespace {

// Defaults that depend on other fields; the rest are the initial values in types.h.
void fill_defaults(TrainingJob& job) {
  if (!job.spec.training) return;
  Evaluation& e = job.spec.training->evaluation;
  if (may_have_held_out_data(job.spec.training->data) && !e.every_steps && !e.every_epochs)
    e.every_epochs = 1;
}

}  // namespace

Parsed parse_training_job(std::string_view text, std::string_view file_name) {
  Findings findings;
  Parsed parsed{.job = TrainingJob{}};
  const auto fields = [&](FieldVisitor& reader) { visit(reader, *parsed.job); };
  if (!read_fields(text, "TrainingJob", "a map with apiVersion, kind, metadata and spec", fields, findings))
    return {std::nullopt, findings.take(file_name)};
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
