#include "controller/coordinator/core_stragglers.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "controller/diagnosis/straggler_cause.h"
#include "controller/diagnosis/straggler_text.h"

namespace paceline::coordinator {

namespace {

api::StragglerKind kind_of(stragglers::FindingKind kind) {
  switch (kind) {
    case stragglers::FindingKind::kSlow:
      return api::StragglerKind::kSlow;
    case stragglers::FindingKind::kMoreWork:
      return api::StragglerKind::kMoreWork;
    case stragglers::FindingKind::kAllSlow:
      return api::StragglerKind::kAllSlow;
  }
  return api::StragglerKind::kSlow;
}

double in_ms(Duration duration) {
  return std::chrono::duration<double, std::milli>(std::chrono::round<std::chrono::microseconds>(duration))
      .count();
}

bool is_same(const api::Straggler& a, const api::Straggler& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == api::StragglerKind::kAllSlow) return (a.members == 0) == (b.members == 0);
  return a.role == b.role && a.index == b.index && a.peer == b.peer;
}

void set_member(const Slot& slot, api::Straggler& straggler) {
  straggler.role = slot.role;
  straggler.index = slot.index;
  straggler.rank = slot.rank;
  if (!slot.hello) return;
  straggler.pod = slot.hello->pod();
  straggler.host = slot.hello->host();
}

bool contains(const std::vector<api::Straggler>& all, const api::Straggler& one) {
  return std::ranges::any_of(all, [&](const api::Straggler& each) { return is_same(each, one); });
}

bool is_end_of(const api::Straggler& link, const api::Straggler& member) {
  return (link.role == member.role && link.index == member.index) ||
         link.peer == member_name(member.role, static_cast<int>(member.index));
}

// Both ends of a slow link take longer to move their bytes, and a step takes longer for all. But where a
// member itself is known to be held up, as by its CPU limit, its links are slow for that reason.
void explain_by_each_other(std::vector<api::Straggler>& links, std::vector<api::Straggler>& others) {
  std::erase_if(links, [&](const api::Straggler& link) {
    return std::ranges::any_of(others, [&](const api::Straggler& each) {
      return each.kind == api::StragglerKind::kSlow && each.cause != api::StragglerCause::kUnknown &&
             is_end_of(link, each);
    });
  });
  const auto is_explained = [&](const api::Straggler& each) {
    if (each.kind == api::StragglerKind::kAllSlow) return each.members == 0;
    return each.kind == api::StragglerKind::kSlow &&
           each.part == stragglers::part_name(stragglers::Part::kTransfer) &&
           std::ranges::any_of(links, [&](const api::Straggler& link) { return is_end_of(link, each); });
  };
  if (!links.empty()) std::erase_if(others, is_explained);
}

}  // namespace

void Causes::add(const std::string& part, api::StragglerCause cause, std::string evidence) {
  if (part != part_) *this = {};
  part_ = part;
  if (++looks_ > kMostLooks) {
    looks_ /= 2;
    for (auto& [each, seen] : seen_) seen.times /= 2;
  }
  Seen& seen = seen_[cause];
  ++seen.times;
  seen.evidence = std::move(evidence);
}

void Causes::set(api::Straggler& straggler) const {
  constexpr int kPart = 4;
  const Seen* most = nullptr;
  straggler.cause = api::StragglerCause::kUnknown;
  straggler.evidence.clear();
  for (const auto& [cause, seen] : seen_) {
    const bool counts = cause != api::StragglerCause::kUnknown && kPart * seen.times >= looks_;
    if (!counts || (most != nullptr && seen.times <= most->times)) continue;
    most = &seen;
    straggler.cause = cause;
    straggler.evidence = seen.evidence;
  }
}

Stragglers::Stragglers(bool looks, std::vector<api::Straggler> known)
    : looks_(looks), told_(std::move(known)) {
  std::erase_if(told_, [](const api::Straggler& each) { return each.kind != api::StragglerKind::kSlow; });
  inherited_ = told_;
  anew_ = !told_.empty();
}

void Stragglers::begin_view(std::span<const Slot> slots, std::span<const std::int64_t> samples,
                            bool other_samples) {
  if (!looks_) return;
  work_.assign(samples.begin(), samples.end());
  if (other_samples) {
    detector_.begin_anew();
    anew_ = true;
    inherited_.clear();
  }
  std::vector<std::pair<int, int>> by_rank;  // rank, place
  ranks_.assign(slots.size(), -1);
  ids_.resize(slots.size());
  for (std::size_t place = 0; place < slots.size(); ++place) {
    const Slot& slot = slots[place];
    if (!slot.trains() || slot.rank < 0 || !slot.hello) continue;
    by_rank.emplace_back(slot.rank, static_cast<int>(place));
    if (std::exchange(ids_[place], slot.hello->member_id()) != slot.hello->member_id())
      detector_.forget(static_cast<int>(place));
  }
  std::ranges::sort(by_rank);
  std::vector<int> places;
  for (const auto& [rank, place] : by_rank) {
    ranks_[static_cast<std::size_t>(place)] = static_cast<int>(places.size());
    places.push_back(place);
  }
  detector_.begin_view(places);
  links_.begin_view(places);
}

void Stragglers::add_links(const Slot& slot, int place, const v1::Links& links) {
  constexpr int kMostLinks = 64;
  const auto at = static_cast<std::size_t>(place);
  if (!looks_ || at >= ranks_.size() || ranks_[at] < 0 || !slot.trains()) return;
  std::vector<stragglers::LinkCount> counts;
  for (int i = 0; i < std::min(links.links_size(), kMostLinks); ++i) {
    const v1::LinkStats& each = links.links(i);
    counts.push_back({.to = static_cast<int>(std::min(each.rank(), static_cast<std::uint32_t>(kMaxMembers))),
                      .bytes = each.bytes(),
                      .rate = each.rate(),
                      .segments = each.segments(),
                      .segments_again = each.segments_again()});
  }
  links_.add(ranks_[at], Duration(links.at_ns()), counts);
}

void Stragglers::add(const Slot& slot, int place, const MemberSteps& steps) {
  const auto at = static_cast<std::size_t>(place);
  if (!looks_ || at >= ranks_.size() || ranks_[at] < 0 || !slot.trains()) return;
  const auto rank = static_cast<std::size_t>(ranks_[at]);
  const double work = rank < work_.size() ? work_[rank] : 0;
  heard_.insert(place);
  for (std::size_t i = 0; i < steps.steps.size(); ++i) {
    const StepTimes& times = steps.times[i];
    detector_.add(ranks_[at], {.step = steps.steps[i],
                               .input = times.input,
                               .compute = times.compute + times.left_out,
                               .update = times.update,
                               .wait = times.wait,
                               .transfer = times.transfer,
                               .checkpoint = times.checkpoint,
                               .work = work});
  }
}

std::vector<StragglerChange> Stragglers::conclude(std::span<const Slot> slots) {
  if (!looks_) return {};
  detector_.advance();
  std::erase_if(inherited_, [&](const api::Straggler& each) { return is_judged(each, slots); });
  count_causes(slots);
  std::vector<api::Straggler> found = describe(slots);
  std::vector<StragglerChange> changes;
  for (const api::Straggler& each : told_) {
    if (contains(found, each)) continue;
    changes.push_back({each, false});
    if (each.kind != api::StragglerKind::kSlow) continue;
    if (cleared_.size() >= kMostTold) cleared_.erase(cleared_.begin());
    cleared_.push_back(each.pod);
  }
  for (const api::Straggler& each : found) {
    std::erase(cleared_, each.pod);
    if (!contains(told_, each)) changes.push_back({each, true});
  }
  told_ = std::move(found);
  return changes;
}

std::optional<std::vector<api::Straggler>> Stragglers::now(std::span<const Slot> slots) const {
  const bool begun = !ranks_.empty();
  if (!begun || (!detector_.knows() && !settles() && links_.findings().empty())) return std::nullopt;
  return describe(slots);
}

std::vector<api::Straggler> Stragglers::describe(std::span<const Slot> slots) const {
  std::vector<stragglers::Finding> findings = detector_.findings();
  if (findings.size() > kMostTold) {
    std::ranges::sort(findings, std::greater(), &stragglers::Finding::own);
    findings.resize(kMostTold);
    std::ranges::sort(findings, {}, &stragglers::Finding::place);
  }
  std::vector<stragglers::LinkFinding> links = links_.findings();
  std::ranges::sort(links, std::greater(), &stragglers::LinkFinding::share);
  links.resize(std::min(links.size(), kMostTold));
  std::vector<api::Straggler> found, others;
  for (const stragglers::LinkFinding& link : links) found.push_back(describe(link, slots));
  for (const stragglers::Finding& finding : findings) {
    if (finding.kind == stragglers::FindingKind::kMoreWork && !work_.empty()) continue;
    others.push_back(describe(finding, slots));
  }
  explain_by_each_other(found, others);
  found.insert(found.end(), others.begin(), others.end());
  for (const api::Straggler& each : told_) {
    const bool kept = settles() || contains(inherited_, each);
    if (kept && !contains(found, each) && stands(each, slots)) found.push_back(each);
  }
  return found;
}

// The detector has something to say of the member, or of all, or the test is back where it began.
bool Stragglers::is_judged(const api::Straggler& inherited, std::span<const Slot> slots) const {
  if (!detector_.knows()) return false;
  const auto is_its = [&](int place) {
    const Slot& slot = slots[static_cast<std::size_t>(place)];
    return slot.role == inherited.role && slot.index == inherited.index;
  };
  const auto says = [&](const stragglers::Finding& each) { return each.place < 0 || is_its(each.place); };
  const auto doubts = [&](const stragglers::Standing& each) {
    return is_its(each.place) && each.evidence > 0;
  };
  return std::ranges::any_of(detector_.findings(), says) ||
         std::ranges::none_of(detector_.standings(), doubts);
}

// Whether a finding from before shares were others is of members that are there yet.
bool Stragglers::stands(const api::Straggler& told, std::span<const Slot> slots) const {
  if (told.kind != api::StragglerKind::kSlow) return told.kind == api::StragglerKind::kAllSlow;
  return std::ranges::any_of(slots, [&](const Slot& slot) {
    return slot.role == told.role && slot.index == told.index && slot.rank >= 0 && slot.hello &&
           slot.hello->pod() == told.pod;
  });
}

void Stragglers::count_causes(std::span<const Slot> slots) {
  const auto is_slow = [&](int place) {
    return std::ranges::any_of(detector_.findings(), [&](const stragglers::Finding& each) {
      return each.place == place && each.kind == stragglers::FindingKind::kSlow;
    });
  };
  std::erase_if(causes_, [&](const auto& each) { return !is_slow(each.first); });
  for (const stragglers::Finding& finding : detector_.findings()) {
    const bool is_news = heard_.contains(finding.place) || !causes_.contains(finding.place);
    if (finding.kind != stragglers::FindingKind::kSlow || !is_news) continue;
    const Slot& slot = slots[static_cast<std::size_t>(finding.place)];
    std::vector<const MemberTelemetry*> others;
    for (const Slot& other : slots) {
      if (&other != &slot && other.trains() && other.rank >= 0) others.push_back(&other.telemetry);
    }
    api::Straggler seen{.part = stragglers::part_name(finding.part),
                        .own_ms = in_ms(finding.own),
                        .lost_ms = in_ms(finding.lost)};
    diagnosis::find_cause(slot.telemetry, others, seen);
    causes_[finding.place].add(seen.part, seen.cause, std::move(seen.evidence));
  }
  heard_.clear();
}

api::Straggler Stragglers::describe(const stragglers::Finding& finding, std::span<const Slot> slots) const {
  api::Straggler straggler{.kind = kind_of(finding.kind),
                           .part = stragglers::part_name(finding.part),
                           .factor = finding.factor,
                           .since_step = finding.since,
                           .steps = finding.steps,
                           .own_ms = in_ms(finding.own),
                           .typical_ms = in_ms(finding.typical),
                           .lost_ms = in_ms(finding.lost),
                           .members = finding.members};
  for (const int place : finding.places) {
    if (straggler.slow_members.size() < api::kMostSlowMembers)
      straggler.slow_members.push_back(slots[static_cast<std::size_t>(place)].name());
  }
  if (finding.place >= 0) {
    const Slot& slot = slots[static_cast<std::size_t>(finding.place)];
    set_member(slot, straggler);
    const auto causes = causes_.find(finding.place);
    if (causes != causes_.end()) causes->second.set(straggler);
  }
  straggler.message = diagnosis::message_of(straggler);
  return straggler;
}

// In times of a step, as the sender's last heartbeat has them.
api::Straggler Stragglers::describe(const stragglers::LinkFinding& finding,
                                    std::span<const Slot> slots) const {
  const Slot& from = slots[static_cast<std::size_t>(finding.from)];
  const Slot& to = slots[static_cast<std::size_t>(finding.to)];
  const double step_ms = from.telemetry.step_ms;
  api::Straggler straggler{.kind = api::StragglerKind::kSlowLink,
                           .peer = to.name(),
                           .part = stragglers::part_name(stragglers::Part::kTransfer),
                           .factor = finding.factor,
                           .own_ms = finding.busy * step_ms,
                           .typical_ms = finding.busy * step_ms / finding.factor,
                           .lost_ms = finding.share * step_ms,
                           .members = 1};
  set_member(from, straggler);
  if (to.hello) straggler.peer_pod = to.hello->pod();
  straggler.evidence = diagnosis::link_evidence(finding.bytes_per_second, finding.again);
  straggler.message = diagnosis::message_of(straggler);
  return straggler;
}

}  // namespace paceline::coordinator
