#include "rules.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "base/text.h"

namespace paceline::detector {

namespace {

using stragglers::StepSample;

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double own(const StepSample& sample) {
  return seconds(sample.input + sample.compute + sample.update);
}

double whole(const StepSample& sample) {
  return own(sample) + seconds(sample.wait + sample.transfer);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

class Ours final : public Rule {
 public:
  explicit Ours(int members) : detector_(stragglers::Settings{}) {
    std::vector<int> places(static_cast<std::size_t>(members));
    std::iota(places.begin(), places.end(), 0);
    detector_.begin_view(places);
  }
  std::string name() const override { return "paceline"; }
  const std::vector<int>& add(const std::vector<StepSample>& step) override {
    for (std::size_t i = 0; i < step.size(); ++i) detector_.add(static_cast<int>(i), step[i]);
    detector_.advance();
    slow_.clear();
    for (const stragglers::Finding& each : detector_.findings()) {
      if (each.kind == stragglers::FindingKind::kSlow) slow_.push_back(each.place);
    }
    return slow_;
  }
  std::string finding() const override {
    if (detector_.findings().empty()) return "";
    const stragglers::Finding& first = detector_.findings().front();
    return str_cat(stragglers::kind_name(first.kind), " ", stragglers::part_name(first.part));
  }

 private:
  stragglers::Detector detector_;
  std::vector<int> slow_;
};

// Judges windows of steps by each member's median.
class Windows : public Rule {
 public:
  Windows(int members, std::function<double(const StepSample&)> time)
      : time_(std::move(time)), values_(static_cast<std::size_t>(members)) {}
  const std::vector<int>& add(const std::vector<StepSample>& step) override {
    for (std::size_t i = 0; i < step.size(); ++i) values_[i].push_back(time_(step[i]));
    if (values_[0].size() < kWindow) return slow_;
    std::vector<double> medians;
    for (std::vector<double>& values : values_) medians.push_back(median(std::exchange(values, {})));
    slow_ = judge(medians);
    return slow_;
  }

 private:
  virtual std::vector<int> judge(const std::vector<double>& medians) = 0;

  const std::function<double(const StepSample&)> time_;
  std::vector<std::vector<double>> values_;
  std::vector<int> slow_;
};

template <typename Slow>
std::vector<int> those(const std::vector<double>& medians, Slow slow) {
  std::vector<int> found;
  for (std::size_t i = 0; i < medians.size(); ++i) {
    if (slow(i)) found.push_back(static_cast<int>(i));
  }
  return found;
}

class BestMedian final : public Windows {
 public:
  explicit BestMedian(int members) : Windows(members, own) {}
  std::string name() const override { return "score < 0.75"; }

 private:
  std::vector<int> judge(const std::vector<double>& medians) override {
    const double best = std::ranges::min(medians);
    return those(medians, [&](std::size_t i) { return best / medians[i] < 0.75; });
  }
};

class TwiceMedian final : public Windows {
 public:
  explicit TwiceMedian(int members) : Windows(members, own) {}
  std::string name() const override { return "> 2x median"; }

 private:
  std::vector<int> judge(const std::vector<double>& medians) override {
    const double middle = median(medians);
    return those(medians, [&](std::size_t i) { return medians[i] > 2 * middle; });
  }
};

class StepTime final : public Windows {
 public:
  explicit StepTime(int members) : Windows(members, whole) {}
  std::string name() const override { return "step > 1.15x"; }

 private:
  std::vector<int> judge(const std::vector<double>& medians) override {
    if (usual_.empty()) usual_ = medians;
    return those(medians, [&](std::size_t i) { return medians[i] > 1.15 * usual_[i]; });
  }
  std::vector<double> usual_;
};

}  // namespace

std::unique_ptr<Rule> make_ours(int members) {
  return std::make_unique<Ours>(members);
}
std::unique_ptr<Rule> make_best_median(int members) {
  return std::make_unique<BestMedian>(members);
}
std::unique_ptr<Rule> make_twice_median(int members) {
  return std::make_unique<TwiceMedian>(members);
}
std::unique_ptr<Rule> make_step_time(int members) {
  return std::make_unique<StepTime>(members);
}

}  // namespace paceline::detector
