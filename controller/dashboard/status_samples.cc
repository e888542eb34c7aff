#include "controller/dashboard/status_samples.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/fields.h"
#include "controller/cluster/kube/times.h"
#include "controller/dashboard/job_row.h"

namespace paceline::dashboard {

namespace {

using kube::Json;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
// In the order of kParts. A status does not tell of checkpoints.
constexpr std::array<std::string_view, kParts.size()> kStatusFields = {
    "inputMs", "computeMs", "waitMs", "transferMs", "updateMs", "", "stepMs"};

std::optional<EvaluationPoint> evaluation_of(const Json& progress, Step step, double seconds) {
  const auto loss = kube::number_at(progress, {"testLoss"});
  const auto accuracy = kube::number_at(progress, {"testAccuracy"});
  const auto auc = kube::number_at(progress, {"testAuc"});
  if (!loss && !accuracy && !auc) return std::nullopt;
  return EvaluationPoint{step, loss.value_or(kUnknown), accuracy.value_or(kUnknown), seconds, auc};
}

bool is_same(const std::optional<EvaluationPoint>& a, const EvaluationPoint& b) {
  const auto same = [](double x, double y) { return x == y || (x != x && y != y); };
  return a && same(a->loss, b.loss) && same(a->accuracy, b.accuracy) && a->auc == b.auc;
}

std::optional<EvaluationPoint> newest_of(const std::vector<EvaluationPoint>& evaluations) {
  return evaluations.empty() ? std::nullopt : std::optional(evaluations.back());
}

}  // namespace

std::size_t StatusSamples::index_of(const std::string& member) {
  const auto found = std::ranges::find(names_, member);
  const auto index = static_cast<std::size_t>(found - names_.begin());
  if (found == names_.end() && names_.size() < kMembers) names_.push_back(member);
  return index;
}

std::size_t StatusSamples::cells_for(const Json& object) {
  return kSamples * (kSampleCells + std::min(kMembers, kube::list_at(object, {"status", "members"}).size()));
}

bool StatusSamples::add(const Json& object, WallTime now, std::size_t most_cells) {
  const Json& progress = kube::at(object, {"status", "progress"});
  const Step step = kube::integer_at(progress, {"step"});
  if (step <= 0 || step > kMostCount || step == newest()) return false;
  const auto begin = kube::parse_time(kube::text_at(object, {"metadata", "creationTimestamp"}));
  Sample sample{.number = version_,
                .step = step,
                .loss = kube::number_at(progress, {"loss"}).value_or(kUnknown),
                .seconds = begin ? std::chrono::duration<double>(now - *begin).count() : kUnknown};
  if (auto told = evaluation_of(progress, step, sample.seconds); told && !is_same(evaluation_, *told))
    evaluation_ = sample.evaluation = told;
  std::vector<std::pair<std::int64_t, std::string>> ranks;
  for (const Json& member : kube::list_at(object, {"status", "members"})) {
    const std::string name = member_name(member);
    if (const auto rank = kube::number_at(member, {"rank"}); rank && *rank >= 0)
      ranks.emplace_back(kube::integer_at(member, {"rank"}), name);
    if (kube::number_at(member, {"stepMs"}).value_or(0) <= 0) continue;
    const std::size_t index = index_of(name);
    if (index >= kMembers) continue;
    Times times;
    for (std::size_t part = 0; part < kParts.size(); ++part)
      times[part] = static_cast<float>(kube::number_at(member, {kStatusFields[part]}).value_or(kUnknown));
    sample.members.push_back({static_cast<std::uint16_t>(index), times});
  }
  sample.members.shrink_to_fit();
  std::ranges::sort(ranks);
  if (!ranks.empty()) view_.clear();
  for (auto& [rank, name] : ranks) view_.push_back(std::move(name));
  cells_ += sample.cells();
  if (samples_.empty()) samples_.reserve(kSamples + 1);
  samples_.push_back(std::move(sample));
  while (samples_.size() > kSamples || (samples_.size() > 2 && cells_ > most_cells)) thin();
  ++version_;
  return true;
}

// One goes whose neighbours are near for their age: what is left lies the closer the newer it is, over all of
// the time. Its evaluation stays with the sample behind it.
void StatusSamples::thin() {
  const auto gap = [&](std::size_t i) {
    const std::uint64_t before = samples_[i - 1].number;
    return static_cast<double>(samples_[i + 1].number - before) / static_cast<double>(version_ + 1 - before);
  };
  std::size_t nearest = 1;
  for (std::size_t i = 2; i + 1 < samples_.size(); ++i) {
    if (gap(i) < gap(nearest)) nearest = i;
  }
  Sample& next = samples_[nearest + 1];
  if (!next.evaluation) next.evaluation = std::move(samples_[nearest].evaluation);
  cells_ -= samples_[nearest].cells();
  samples_.erase(samples_.begin() + static_cast<std::ptrdiff_t>(nearest));
}

void StatusSamples::add_to(JobSeries& series, std::uint64_t from) const {
  if (samples_.empty()) return;
  series.set_view(view_);
  Step before = -1;
  for (const Sample& sample : samples_) {
    const Step since = std::exchange(before, sample.step);
    if (sample.number < from) continue;
    series.add(StepPoint{sample.step, sample.loss, kUnknown, sample.seconds});
    if (sample.evaluation && !is_same(newest_of(series.evaluations()), *sample.evaluation))
      series.add(*sample.evaluation);
    const Step first = since < 0 || sample.step < since ? sample.step : since + 1;
    for (const Cell& cell : sample.members)
      series.add(MemberPoint{names_[cell.member], sample.step, cell.means}, first, samples_.back().step);
  }
}

}  // namespace paceline::dashboard
