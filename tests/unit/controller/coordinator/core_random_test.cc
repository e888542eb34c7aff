// Random worlds: members attach, train, die, freeze, hang, fail, report one another, and are replaced, in
// every order that a seed gives. Whatever happens: generations rise, a generation has one view, ranks are a
// permutation, every verdict names one member, and none that was alive and heard from while
// another one was dead.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rng.h"
#include "base/text.h"
#include "controller/coordinator/core.h"
#include "controller/diagnosis/fault_text.h"

namespace paceline::coordinator {
namespace {

using std::chrono::milliseconds;

struct Member {
  Role role = Role::kWorker;
  int index = 0;
  int incarnation = 0;
  std::uint64_t stream = 0;  // 0: not attached
  bool frozen = false;
  std::int64_t hung_in = 0;  // it takes no step any more of the view of this generation; 0: it does
  bool gone = false;         // dead, failed or left
  bool ever_bad = false;     // it died, froze, hung or failed: it may be at fault
  std::string id() const { return str_cat(role_name(role), index, "-", incarnation); }
};

class World {
 public:
  World(std::uint64_t seed, bool survive, bool checks) : rng_(seed, 1), survive_(survive), checks_(checks) {
    CoreConfig config;
    config.job = "default/random";
    config.link_key = std::string(32, 'k');
    config.roles = {{Role::kChief, static_cast<int>(rng_.below(2))},
                    {Role::kWorker, 1 + static_cast<int>(rng_.below(6))}};
    if (survive) {
      config.on_member_lost = [](const api::Fault&, int) {
        return LossDecision{LossAction::kFormNextView, "go on"};
      };
    }
    if (checks)
      config.preflight =
          PreflightRules{.excludes = true, .most = 2, .replaced = {Role::kChief, Role::kWorker}};
    for (const ExpectedRole& role : config.roles) {
      for (int i = 0; i < role.count; ++i) members_.push_back({role.role, i});
    }
    core_ = std::make_unique<CoordinatorCore>(config, now_);
  }

  void run(int events) {
    for (int i = 0; i < events && !is_final(core_->state()); ++i) {
      now_ += milliseconds(rng_.below(60));
      event();
      feed(Tick{});
      if (::testing::Test::HasFailure()) return;
    }
    for (int i = 0; i < 600 && !is_final(core_->state()) && (bad_ || !survive_);
         ++i) {  // whatever was seen has been judged
      now_ += milliseconds(50);
      beat_all();
      feed(Tick{});
    }
  }

  int views() const { return views_; }
  int verdicts() const { return verdicts_; }
  int early_ticks() const { return early_ticks_; }
  int hangs() const { return hangs_; }
  int checks() const { return results_; }
  int excluded() const { return excluded_; }

 private:
  bool spoil(Member& m) {
    bad_pods_.insert(m.id());
    return m.ever_bad = bad_ = true;
  }

  Member& any() { return members_[rng_.below(members_.size())]; }

  void event() {
    Member& m = any();
    switch (rng_.below(25)) {
      case 0:
        return attach(m, 1 + rng_.below(3) == 1);
      case 1:
        return die(m);
      case 2:
        if (m.stream != 0 && rng_.below(3) == 0) m.frozen = spoil(m);
        return;
      case 3:
        return fail(m);
      case 4:
        return report(m, any());
      case 5:
        return garbage(m);
      case 6:
        bad_pods_.insert(
            "pod-of-another-time");  // where nobody is attached yet, it is the one that is waited for
        return feed(PodFact{m.role, m.index, "pod-of-another-time", 1, {}});
      case 7:
        return feed(StreamEnded{{rng_.below(1000) + 100000}, "stranger"});
      case 8:
        return hang(m);
      default:
        for (Member& other : members_) {
          if (other.stream == 0 && !other.gone) attach(other, false);
        }
        return beat_all();
    }
  }

  void attach(Member& m, bool impostor) {
    if (m.frozen) return;
    if (m.gone) {
      if (!survive_) return;
      m = Member{m.role, m.index, m.incarnation + 1};
    }
    Attached in{{++streams_}, {}};
    in.hello.set_protocol_version(kProtocolVersion);
    in.hello.set_job("default/random");
    in.hello.set_role(static_cast<v1::RoleKind>(m.role));
    in.hello.set_index(static_cast<std::uint32_t>(m.index));
    in.hello.set_member_id(impostor ? str_cat("impostor", streams_) : m.id());
    in.hello.set_host_id(std::to_string(m.index));
    in.hello.set_pod(m.id());
    in.hello.set_incarnation(m.incarnation);
    in.hello.set_answers_preflight(true);
    const std::uint64_t before = m.stream;
    if (!impostor || before == 0) m.stream = streams_;
    if (impostor && before == 0) m.gone = spoil(m);  // it may have taken the place: then it dies
    const StreamId stream = in.stream;
    feed(in);
    if (impostor) {
      bad_ = true;
      bad_pods_.insert(in.hello.pod());
      feed(StreamEnded{stream, "the impostor goes"});
      m.stream = before;
    }
  }

  void beat_all() {
    for (Member& m : members_) {
      if (m.stream == 0 || m.frozen) continue;
      v1::MemberMessage message;
      v1::Heartbeat& beat = *message.mutable_heartbeat();
      beat.set_generation(static_cast<std::uint64_t>(generation_));
      beat.set_phase(core_->state() == JobState::kDraining || rng_.below(4) == 0 ? v1::WAITING
                                                                                 : v1::TRAINING);
      beat.set_step(static_cast<std::int64_t>(rng_.below(100)));
      if (checks_ && core_->state() == JobState::kForming) beat.set_phase(v1::WAITING);
      tell_part(m, beat);
      feed(Received{{m.stream}, message});
      if (const auto asked = asked_.find(m.stream); asked != asked_.end() && rng_.below(8) != 0)
        answer(m, asked->second);
    }
  }

  // Some are slow in a test, and some have not done it.
  void answer(const Member& m, std::uint64_t number) {
    v1::MemberMessage message;
    v1::PreflightResult& result = *message.mutable_preflight();
    result.set_number(number);
    if (rng_.below(10) != 0) result.set_compute_seconds(rng_.below(10) == 0 ? 5 : 1);
    if (rng_.below(4) != 0) result.set_link_seconds(rng_.below(10) == 0 ? 5 : 1);
    feed(Received{{m.stream}, message});
  }

  void hang(Member& m) {
    if (m.stream == 0 || m.frozen || core_->state() != JobState::kRunning) return;
    spoil(m);
    m.hung_in = generation_;
  }

  // While one hangs, the others wait for it. Else each is in any part, though not for long.
  void tell_part(const Member& m, v1::Heartbeat& beat) {
    beat.add_step_times()->set_compute_ns(50'000'000);
    beat.add_step_time_steps(1);
    const bool one_hangs = std::ranges::any_of(members_, [](const Member& each) { return each.hung_in > 0; });
    const milliseconds time(one_hangs ? 10'001 : static_cast<std::int64_t>(rng_.below(10'000)));
    beat.set_part(m.hung_in > 0 ? v1::PART_COMPUTE
                  : one_hangs   ? v1::PART_EXCHANGE
                                : static_cast<v1::StepPart>(rng_.below(5)));
    beat.set_part_ns(Duration(time).count());
    if (one_hangs) beat.set_step(100);
    if (m.hung_in == 0) return;
    beat.set_generation(static_cast<std::uint64_t>(m.hung_in));
    beat.set_phase(v1::TRAINING);
  }

  void die(Member& m) {
    if (m.stream == 0) return;
    m.gone = spoil(m);
    const StreamId stream{std::exchange(m.stream, 0)};
    const PodFact fact{
        .role = m.role, .index = m.index, .pod = m.id(), .signal = 9, .incarnation = m.incarnation};
    const bool fact_first = rng_.below(2) == 0;
    if (fact_first) feed(fact);
    feed(StreamEnded{stream, "reset"});
    if (!fact_first && rng_.below(2) == 0) feed(fact);
  }

  void fail(Member& m) {
    if (m.stream == 0 || m.frozen) return;
    m.gone = spoil(m);
    v1::MemberMessage message;
    message.mutable_leaving()->set_outcome(rng_.below(2) == 0 ? v1::Leaving::FAILED : v1::Leaving::STOPPED);
    feed(Received{{std::exchange(m.stream, 0)}, message});
  }

  // Reports come from the living only about those that really are bad, or rarely about anybody.
  void report(Member& by, Member& whom) {
    if (by.stream == 0 || by.frozen || (!whom.ever_bad && rng_.below(4) != 0)) return;
    reported_ = true;
    if (!whom.ever_bad) bad_ = true;
    v1::MemberMessage message;
    message.mutable_peer_fault()->set_generation(static_cast<std::uint64_t>(generation_));
    message.mutable_peer_fault()->set_peer_member_id(whom.id());
    feed(Received{{by.stream}, message});
  }

  void garbage(Member& m) {
    if (m.stream == 0 || m.frozen || rng_.below(4) != 0) return;
    m.gone = spoil(m);
    v1::MemberMessage message;
    if (rng_.below(2) == 0)
      message.mutable_heartbeat()->set_generation(static_cast<std::uint64_t>(generation_) + 1 +
                                                  rng_.below(3));
    feed(Received{{m.stream}, message});
    m.stream = 0;
  }

  void feed(const Input& input) {
    const bool early = std::holds_alternative<Tick>(input) && now_ < core_->due();
    const JobState before = core_->state();
    const Effects effects = core_->step(input, now_);
    if (early) {
      ++early_ticks_;
      EXPECT_TRUE(effects.send.empty() && effects.close.empty() && effects.reasons.empty() && !effects.view &&
                  !effects.verdict && core_->state() == before)
          << "a tick that is not due has an effect";
    }
    std::set<std::uint64_t> closed;
    for (const StreamId& stream : effects.close)
      EXPECT_TRUE(closed.insert(stream.value).second) << "closed twice";
    for (const Send& send : effects.send) check_send(send);
    if (effects.preflight) ++results_;
    if (effects.view) check_view(*effects.view);
    if (effects.verdict) check_verdict(*effects.verdict);
    for (const api::Fault& lost : effects.lost) check_verdict(lost);
    for (Member& m : members_) {
      if (closed.contains(m.stream) && !is_final(core_->state()))
        m.gone = spoil(m), m.stream = 0, m.frozen = false, m.hung_in = 0;
    }
  }

  void check_send(const Send& send) {
    EXPECT_NE(send.stream.value, 0u);
    if (send.message.has_preflight()) {
      EXPECT_EQ(generation_, 0) << "nobody is checked who trains";
      std::uint64_t& newest = asked_[send.stream.value];
      EXPECT_GT(send.message.preflight().number(), newest);
      newest = send.message.preflight().number();
    }
    if (!send.message.has_view()) return;
    const v1::View& view = send.message.view();
    const auto [it, first] = sent_.emplace(view.generation(), view.SerializeAsString());
    EXPECT_EQ(it->second, view.SerializeAsString()) << "two views of generation " << view.generation();
  }

  void check_view(const ViewRecord& view) {
    ++views_;
    EXPECT_GT(static_cast<std::int64_t>(view.generation.value), generation_);
    generation_ = static_cast<std::int64_t>(view.generation.value);
    const std::size_t size = view.members.size();
    EXPECT_TRUE(size == members_.size() || (survive_ && size > 0)) << size << " members";
    EXPECT_EQ(std::set<std::string>(view.members.begin(), view.members.end()).size(), size);
    std::set<int> ranks;
    for (const MemberReport& member : core_->report(now_).members) {
      if (member.rank >= 0) {
        EXPECT_TRUE(ranks.insert(member.rank).second);
      }
    }
    EXPECT_EQ(ranks.size(), size);
    EXPECT_EQ(*ranks.begin(), 0);
    EXPECT_EQ(*ranks.rbegin(), static_cast<int>(size) - 1);
  }

  void check_verdict(const api::Fault& verdict) {
    ++verdicts_;
    excluded_ += verdict.kind == api::FaultKind::kUnfit ? 1 : 0;
    if (verdict.kind == api::FaultKind::kUnfit) {
      EXPECT_EQ(generation_, 0) << "nobody is excluded who trains";
      return;
    }
    hangs_ += verdict.kind == api::FaultKind::kHung ? 1 : 0;
    if (verdict.kind == api::FaultKind::kMissing) return;
    for (const api::Victim& victim : verdict.victims)
      EXPECT_FALSE(victim.role == verdict.role && victim.index == verdict.index);
    const bool reported_only = verdict.kind == api::FaultKind::kUnreachable && reported_;
    EXPECT_TRUE(reported_only || bad_pods_.contains(verdict.pod))
        << diagnosis::message_of(verdict) << ", in pod " << verdict.pod;
  }

  Rng rng_;
  bool survive_, checks_;
  TimePoint now_{};
  std::vector<Member> members_;
  std::unique_ptr<CoordinatorCore> core_;
  std::uint64_t streams_ = 0;
  std::int64_t generation_ = 0;
  std::map<std::uint64_t, std::string> sent_;
  std::set<std::string> bad_pods_;  // of members that died, froze, failed, or broke the protocol
  bool bad_ = false, reported_ = false;
  std::map<std::uint64_t, std::uint64_t> asked_;  // by stream: the newest message of a check
  int views_ = 0, verdicts_ = 0, early_ticks_ = 0, hangs_ = 0, results_ = 0, excluded_ = 0;
};

void run_worlds(bool survive, bool checked = false) {
  int views = 0, verdicts = 0, early_ticks = 0, hangs = 0, checks = 0, excluded = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(str_cat("seed ", seed));
    World world(seed, survive, checked);
    world.run(survive ? 200 : 80);
    views += world.views();
    verdicts += world.verdicts();
    early_ticks += world.early_ticks();
    hangs += world.hangs();
    checks += world.checks();
    excluded += world.excluded();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(views, 500);
  EXPECT_GT(verdicts, 500);
  EXPECT_GT(early_ticks, 500) << "some ticks can be spared";
  EXPECT_GT(hangs, 50);
  if (!checked) return;
  EXPECT_GT(checks, 300);
  EXPECT_GT(excluded, 50);
}

TEST(CoreRandomTest, JobsThatFail) {
  run_worlds(false);
}
TEST(CoreRandomTest, JobsThatGoOn) {
  run_worlds(true);
}
TEST(CoreRandomTest, JobsThatCheckTheirMembers) {
  run_worlds(true, true);
}

}  // namespace
}  // namespace paceline::coordinator
