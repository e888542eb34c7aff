#include "tests/simulation/share_checks.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "runtime/data/ledger.h"

namespace paceline::simulation {

void ShareChecks::on_view(const std::string& coordinator, const v1::View& view, const std::string& members,
                          std::int64_t batch, const reconcile::StoredJob* job) {
  // Members see views later than they are formed, by what the network takes.
  constexpr Duration kSlack = std::chrono::seconds(2);
  std::vector<double> shares;
  for (const v1::ViewMember& each : view.members()) shares.push_back(each.share());
  std::vector<std::int64_t> samples = data::cut_batch(batch, shares);
  const bool enough = batch >= static_cast<std::int64_t>(samples.size());
  if (std::accumulate(samples.begin(), samples.end(), std::int64_t{0}) != batch ||
      std::ranges::any_of(samples, [enough](std::int64_t n) { return n < (enough ? 1 : 0); }))
    trace_.fail("shares are samples of the batch", "view ", view.generation(), " of ", members);
  const auto [least, most] = std::ranges::minmax_element(samples);
  const bool follows =
      job != nullptr && job->job.spec.stragglers.action == api::StragglerPolicyAction::kRebalance;
  if (!follows && *most - *least > 1)
    trace_.fail("shares are even", "view ", view.generation(), " has ", *least, " to ", *most, " samples");
  Last& last = last_[coordinator];
  const bool same = last.members == members;
  if (same && last.samples == samples) return;
  if (same) {
    ++changes_;
    trace_.add("shares follow speed: ", *least, " to ", *most, " samples of ", batch);
    const Duration lost = std::chrono::round<Duration>(
        std::chrono::duration<double>(follows ? job->job.spec.stragglers.lost_seconds : 0));
    if (trace_.now() - last.since + kSlack < lost)
      trace_.fail("shares do not flap", "view ", view.generation(), " has others after ",
                  format_duration(trace_.now() - last.since));
  }
  last = {members, std::move(samples), trace_.now()};
}

}  // namespace paceline::simulation
