#include "base/check.h"
#include "controller/api/local.h"
#include "controller/api/parse.h"
#include "controller/api/print.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

int fuzz_training_job(Input input) {
  api::Parsed parsed = api::parse_training_job(text_of(input), "job.yaml");
  PL_CHECK(parsed.diagnostics.size() <= api::kMaxDiagnostics + 1, "diagnostics are bounded");
  PL_CHECK(parsed.job.has_value() != api::has_errors(parsed.diagnostics), "there is a job, or an error");
  (void)api::render_diagnostics(parsed.diagnostics, text_of(input));
  if (!parsed.job) return 0;
  const std::string yaml = api::print_yaml(*parsed.job);
  const api::Parsed again = api::parse_training_job(yaml, "again.yaml");
  PL_CHECK(again.job && api::print_yaml(*again.job) == yaml, "what is printed is read back");
  (void)api::make_local(*parsed.job);
  return 0;
}

}  // namespace paceline::fuzz
