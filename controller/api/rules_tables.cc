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

constexpr char kModelType[] = "spec.training.model.type";
constexpr char kCrosses[] = "spec.training.model.crosses";
constexpr char kTables[] = "spec.training.model.tables";
constexpr char kClicks[] = "spec.training.data.clicks";
constexpr char kBatch[] = "spec.training.globalBatchSize";
constexpr char kAuc[] = "spec.training.target.auc";

void check_where_rows_are(const TrainingJob& job, Findings& f) {
  if (job.spec.strategy.type == StrategyType::kParameterServer || !f.clean(kStrategyType)) return;
  f.refuse(kModelType, "its rows lie on parameter servers", quote(name(ModelType::kWideAndDeep)),
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
      f.refuse(path, "not in ascending order", str_cat(place[1], " after ", place[0]),
               "each field once, in ascending order");
    } else if (counted && cross.back() >= fields) {
      f.refuse(path, "names a field that the data lacks", str_cat(cross.back()),
               str_cat("0 to ", fields - 1, ", as many as data.clicks.vocabularies has"));
    }
  }
}

void check_eviction(const char* table, const Table& t, Findings& f) {
  const std::string path = str_cat(kTables, ".", table, ".eviction");
  if (!f.has(path) || !f.clean(str_cat(kTables, ".", table)) || t.max_rows > 0) return;
  f.refuse(path, "nothing is evicted without a bound", "", "only with maxRows above 0");
}

// What the samples of one unit may need at once, against what a server gives; empty: no more than that.
struct Excess {
  std::string needed, allowed;
};
Excess excess_of(const Training& t, std::int64_t samples) {
  const auto fields = static_cast<std::int64_t>(t.data.clicks.vocabularies.size());
  const auto crosses = static_cast<std::int64_t>(t.model.crosses.size());
  std::int64_t deep = 0;
  for (const std::int64_t values : t.data.clicks.vocabularies) deep += std::min(values, samples);
  const std::int64_t wide = deep + samples * crosses, floats = wide + deep * t.model.embedding;
  const std::int64_t lookups = samples * (fields + crosses);
  if (wide > kMaxUnitRows) return {str_cat(wide, " rows of one table"), str_cat(kMaxUnitRows, " rows")};
  if (floats > kMaxUnitFloats)
    return {str_cat(floats, " floats of both tables"), str_cat(kMaxUnitFloats, " floats")};
  if (lookups > kMaxUnitLookups)
    return {str_cat(lookups, " values and crosses"), str_cat(kMaxUnitLookups, " of them")};
  return {};
}

void check_rows(const TrainingJob& job, Findings& f) {
  const Training& t = *job.spec.training;
  const std::int64_t units = units_per_step(job);
  if (t.data.format != DataFormat::kClicks || !f.has(kClicks) || !f.clean(kClicks) || t.model.embedding < 1)
    return;
  if (units <= 0 || !f.has(kBatch) || !f.clean(kBatch) || !f.clean("spec.replicaSpecs") ||
      !f.clean("spec.strategy"))
    return;
  const std::int64_t share = (t.global_batch_size + units - 1) / units;
  const Excess excess = excess_of(t, share);
  if (excess.needed.empty()) return;
  f.refuse(kBatch, "needs more at once than servers give",
           str_cat("a share of ", share, " samples, which may be up to ", excess.needed),
           str_cat("up to ", excess.allowed, ": a smaller batch, or more workers"));
}

// Without servers no evaluation tells an AUC, and members refuse the target as they start (runtime/trainer):
// what is refused here is no job that could train.
void check_auc(const TrainingJob& job, Findings& f) {
  const Training& t = *job.spec.training;
  if (!t.target || !t.target->auc || !f.has(kModelType) || !f.clean(kModelType)) return;
  if (t.model.type != ModelType::kWideAndDeep && t.model.type != ModelType::kCustom) {
    f.refuse(
        kAuc,
        str_cat("the model ", name(t.model.type), " gives no single score that samples could be ranked by"),
        "", "only with model.type: wide-and-deep, custom");
  } else if (t.model.type == ModelType::kCustom && job.spec.strategy.type != StrategyType::kParameterServer &&
             f.clean(kStrategyType)) {
    f.refuse(kAuc, "the members of an all-reduce evaluate a part each, and nobody ranks all samples", "",
             "only with strategy.type: ParameterServer");
  }
}

}  // namespace

void check_tables(const TrainingJob& job, Findings& findings) {
  check_auc(job, findings);
  const Training& t = *job.spec.training;
  if (t.model.type != ModelType::kWideAndDeep || !findings.has(kModelType) || !findings.clean(kModelType))
    return;
  check_where_rows_are(job, findings);
  check_crosses(t, findings);
  check_eviction("wide", t.model.tables.wide, findings);
  check_eviction("deep", t.model.tables.deep, findings);
  check_rows(job, findings);
}

}  // namespace paceline::api
