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
std::vector<std::string> missing(const std::vector<ViewChanges::Member>& all,
                                 const std::vector<ViewChanges::Member>& others) {
  std::vector<std::string> names;
  for (const ViewChanges::Member& member : all) {
    if (std::ranges::find(others, member) == others.end()) names.push_back(member.name);
  }
  if (names.size() <= ViewChanges::kMostNamed) return names;
  const std::size_t more = names.size() - ViewChanges::kMostNamed + 1;
  names.resize(ViewChanges::kMostNamed - 1);
  names.push_back(str_cat(more, " more"));
  return names;
}

}  // namespace

void ViewChanges::Cause::add(const std::string& more, std::optional<Duration> after) {
  why += str_cat(why.empty() || more.empty() ? "" : "; ", more);
  if (after) noticed = std::max(noticed.value_or(Duration::zero()), *after);
}

void ViewChanges::member_lost(const std::string& why, Duration noticed) {
  if (!next_.noticed) next_.why.clear();
  next_.add(why, noticed);
}

void ViewChanges::stands_by(const std::string& name) {
  next_.add(str_cat(name, " stands by"), std::nullopt);
}

void ViewChanges::formed(Generation generation, std::vector<Member> members, Step applied) {
  generation_ = generation;
  members_ = std::move(members);
  applied_ = begins_ ? std::max(applied_, applied) : applied;
  const Cause since = std::exchange(next_, {});
  newest_.add(since.why, since.noticed);
  begins_ = true;
}

std::optional<api::ViewChange> ViewChanges::begins(const v1::ViewBegin& word) {
  if (!std::exchange(begins_, false)) return std::nullopt;
  const auto before = std::exchange(before_, members_);
  const auto [why, noticed] = std::exchange(newest_, {});
  if (!before && !reached_) return std::nullopt;
  api::ViewChange change{.generation = generation_, .message = why, .restarted = !before};
  if (before) {
    change.came = missing(members_, *before);
    change.left = missing(*before, members_);
  }
  if (noticed) change.noticed_seconds = std::chrono::duration<double>(*noticed).count();
  change.view_seconds = in_seconds(word.view_ns());
  change.state_seconds = in_seconds(word.state_ns());
  change.step_seconds = in_seconds(word.step_ns());
  change.step = sane_step(word.step());
  change.steps_lost = std::max<Step>((before ? applied_ : *reached_) + 1 - change.step, 0);
  return change;
}

}  // namespace paceline::coordinator
