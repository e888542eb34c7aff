#include "controller/coordinator/core_view_change.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "controller/coordinator/core_progress.h"

namespace paceline::coordinator {

namespace {

double in_seconds(std::int64_t ns) {
  return std::chrono::duration<double>(sane_duration(ns)).count();
}

// The names of `all` that are not among `others`.
std::vector<std::string> missing(const std::vector<std::string>& all,
                                 const std::vector<std::string>& others) {
  std::vector<std::string> names;
  for (const std::string& name : all) {
    if (std::ranges::find(others, name) == others.end()) names.push_back(name);
  }
  if (names.size() <= ViewChanges::kMostNamed) return names;
  const std::size_t more = names.size() - ViewChanges::kMostNamed + 1;
  names.resize(ViewChanges::kMostNamed - 1);
  names.push_back(str_cat(more, " more"));
  return names;
}

}  // namespace

void ViewChanges::member_lost(const std::string& why, Duration noticed) {
  if (!noticed_) why_.clear();
  why_ += str_cat(why_.empty() ? "" : "; ", why);
  noticed_ = std::max(noticed_.value_or(Duration::zero()), noticed);
}

void ViewChanges::formed(Generation generation, std::vector<std::string> members, Step applied) {
  change_.reset();
  if (!members_.empty()) {
    change_ = api::ViewChange{.generation = generation,
                              .came = missing(members, members_),
                              .left = missing(members_, members),
                              .message = std::exchange(why_, "")};
    if (noticed_) change_->noticed_seconds = std::chrono::duration<double>(*noticed_).count();
  }
  noticed_.reset();
  members_ = std::move(members);
  applied_ = applied;
}

std::optional<api::ViewChange> ViewChanges::begins(const v1::ViewBegin& word) {
  if (!change_) return std::nullopt;
  api::ViewChange change = *std::exchange(change_, std::nullopt);
  change.view_seconds = in_seconds(word.view_ns());
  change.state_seconds = in_seconds(word.state_ns());
  change.step_seconds = in_seconds(word.step_ns());
  change.step = sane_step(word.step());
  change.steps_lost = std::max<Step>(applied_ + 1 - change.step, 0);
  return change;
}

}  // namespace paceline::coordinator
