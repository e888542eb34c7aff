#include "controller/diagnosis/root_cause.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "base/pluralize.h"

namespace paceline::diagnosis {

namespace {

bool serves(const Surroundings& around, int slot) {
  const auto at = static_cast<std::size_t>(slot);
  return at < around.places.size() && around.places[at].serves;
}

const Evidence* earliest(std::span<const Evidence> evidence, bool soft) {
  const Evidence* first = nullptr;
  for (const Evidence& e : evidence) {
    if (e.soft == soft &&
        (first == nullptr || std::tie(e.since, e.slot) < std::tie(first->since, first->slot)))
      first = &e;
  }
  return first;
}

// All are alive and talk to the coordinator. The word of one that has left is worth less than its own
// failure.
RootCause by_reports(const Evidence* first_to_leave, std::span<const PeerReport> reports,
                     const Surroundings& around) {
  if (reports.empty()) return {first_to_leave->slot, first_to_leave->seen, {}};
  const Suspect suspect = find_suspect(reports, around);
  if (suspect.reporters <= 1 && first_to_leave != nullptr)
    return {first_to_leave->slot, first_to_leave->seen, {}};
  const bool named = suspect.reporters > 0;
  const auto is_about = [&](const PeerReport& r) { return (named ? r.peer : r.reporter) == suspect.slot; };
  std::string lost = "it lost its link to a server that others go on with";
  if (!named && std::ranges::none_of(reports, [&](const PeerReport& r) { return serves(around, r.peer); }))
    lost = "it lost its link to a member that has the state, before it had it";
  if (named) {
    lost = str_cat(pluralize(suspect.reporters, "peer", "peers"), " lost the link to it");
  } else if (serves(around, suspect.slot)) {
    lost = str_cat("it lost its links to ",
                   pluralize(std::ranges::count_if(reports, is_about), "peer", "peers"));
  }
  const std::string& reason = std::ranges::find_if(reports, is_about)->reason;
  return {suspect.slot,
          {api::ObservationKind::kPeerReports,
           str_cat(lost, ", though it still talks to the coordinator: ", reason)},
          {},
          suspect.sure};
}

}  // namespace

bool has_hard(std::span<const Evidence> evidence) {
  return !std::ranges::all_of(evidence, &Evidence::soft);
}

bool all_follow(std::span<const Evidence> evidence) {
  return !evidence.empty() && std::ranges::all_of(evidence, &Evidence::follows);
}

std::optional<RootCause> find_root_cause(std::span<const Evidence> evidence,
                                         std::span<const PeerReport> reports, const Surroundings& around) {
  if (evidence.empty() && reports.empty()) return std::nullopt;
  const Evidence* const hard = earliest(evidence, false);
  RootCause root = hard != nullptr ? RootCause{hard->slot, hard->seen, {}}
                                   : by_reports(earliest(evidence, true), reports, around);
  std::set<int> victims;
  for (const Evidence& e : evidence) victims.insert(e.slot);
  for (const PeerReport& r : reports) victims.insert(r.reporter);
  victims.erase(root.slot);
  root.victims.assign(victims.begin(), victims.end());
  return root;
}

}  // namespace paceline::diagnosis
