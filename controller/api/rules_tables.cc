// Models whose rows lie on parameter servers, and AUC.

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/rules.h"
#include "controller/api/scalars.h"

namespace paceline::api {

namespace {

constexpr char kType[] = "spec.training.model.type";
constexpr char kCrosses[] = "spec.training.model.crosses";
constexpr char kTables[] = "spec.training.model.tables";
constexpr char kClicks[] = "spec.training.data.clicks";
constexpr char kBatch[] = "spec.training.globalBatchSize";
constexpr char kEvaluationBatch[] = "spec.training.evaluation.batchSize";
constexpr char kAuc[] = "spec.training.target.auc";

void error(Findings& f, const std::string& path, std::string problem, std::string found,
           std::string allowed) {
  Diagnostic& d = f.add(path, std::move(problem));
  d.found = std::move(found);
  d.allowed = std::move(allowed);
}

void check_where_rows_are(const TrainingJob& job, Findings& f) {
  if (job.spec.strategy.type == StrategyType::kParameterServer || !f.clean("spec.strategy.type")) return;
  error(f, kType, "its rows lie on parameter servers", quote(name(ModelType::kWideAndDeep)),
        "only with strategy.type: ParameterServer");
}

void check_crosses(const Training& t, Findings& f) {
  const bool counted = t.data.format == DataFormat::kClicks && f.has(kClicks) && f.clean(kClicks);
  const auto fields = static_cast<std::int64_t>(t.data.clicks.vocabularies.size());
  for (std::size_t i = 0; i < t.model.crosses.size(); ++i) {
    const std::vector<std::int64_t>& cross = t.model.crosses[i];
    const std::string path = str_cat(kCrosses, "[", i, "].fields");
    if (!f.clean(path) || cross.empty()) continue;
    const auto place = std::ranges::adjacent_find(cross, std::ranges::greater_equal());
    if (place != cross.end()) {
      error(f, path, "not in ascending order", str_cat(place[1], " after ", place[0]),
            "each field once, in ascending order");
    } else if (counted && cross.back() >= fields) {
      error(f, path, "names a field that the data lacks", str_cat(cross.back()),
            str_cat("0 to ", fields - 1, ", as many as data.clicks.vocabularies has"));
    }
  }
}

void check_eviction(const char* table, const Table& t, Findings& f) {
  const std::string path = str_cat(kTables, ".", table, ".eviction");
  if (!f.has(path) || !f.clean(str_cat(kTables, ".", table)) || t.max_rows > 0) return;
  error(f, path, "nothing is evicted without a bound", "", "only with maxRows above 0");
}

// Of how many rows `samples` look one up at most, in the table that has more, against what a server gives at
// once.
struct Rows {
  std::int64_t needed = 0, allowed = 0;
};
Rows rows_of(const Training& t, std::int64_t samples) {
  std::int64_t deep = 0;
  for (const std::int64_t values : t.data.clicks.vocabularies) deep += std::min(values, samples);
  const Rows deep_rows{deep, std::min(kMaxUnitRows, kMaxUnitFloats / t.model.embedding)};
  const Rows wide_rows{deep + samples * static_cast<std::int64_t>(t.model.crosses.size()), kMaxUnitRows};
  return wide_rows.needed > wide_rows.allowed ? wide_rows : deep_rows;
}

void check_rows(const TrainingJob& job, Findings& f) {
  const Training& t = *job.spec.training;
  const std::int64_t units = units_per_step(job);
  if (t.data.format != DataFormat::kClicks || !f.has(kClicks) || !f.clean(kClicks) || t.model.embedding < 1)
    return;
  const auto check = [&](const char* path, const char* whose, std::int64_t samples, const char* what_to_do) {
    if (!f.clean(path)) return;
    const Rows rows = rows_of(t, samples);
    if (rows.needed <= rows.allowed) return;
    error(f, path, "needs more rows at once than servers give",
          str_cat(whose, samples, " samples, which may be up to ", rows.needed, " rows of one table"),
          str_cat("up to ", rows.allowed, " rows: ", what_to_do));
  };
  if (units > 0 && f.has(kBatch) && f.clean("spec.replicaSpecs") && f.clean("spec.strategy"))
    check(kBatch, "a share of ", (t.global_batch_size + units - 1) / units,
          "a smaller batch, or more workers");
  check(kEvaluationBatch, "", t.evaluation.batch_size, "a smaller batch");
}

void check_auc(const TrainingJob& job, Findings& f) {
  const Training& t = *job.spec.training;
  if (!t.target || !t.target->auc || !f.has(kType) || !f.clean(kType)) return;
  if (t.model.type == ModelType::kWideAndDeep || t.model.type == ModelType::kCustom) return;
  error(f, kAuc, str_cat("a ", name(t.model.type), " gives no single score that samples could be ranked by"),
        "", "only with model.type: wide-and-deep, custom");
}

}  // namespace

void check_tables(const TrainingJob& job, Findings& findings) {
  check_auc(job, findings);
  const Training& t = *job.spec.training;
  if (t.model.type != ModelType::kWideAndDeep || !findings.has(kType) || !findings.clean(kType)) return;
  check_where_rows_are(job, findings);
  check_crosses(t, findings);
  check_eviction("wide", t.model.tables.wide, findings);
  check_eviction("deep", t.model.tables.deep, findings);
  check_rows(job, findings);
}

}  // namespace paceline::api
