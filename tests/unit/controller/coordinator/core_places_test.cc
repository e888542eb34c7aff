#include "controller/coordinator/core_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CoreConfig config_of(std::vector<ExpectedRole> roles) {
  CoreConfig config;
  config.roles = std::move(roles);
  config.attempt = 3;
  return config;
}

Places ring(int workers, int standby = 0) {
  return Places(config_of({{Role::kChief, 1}, {Role::kWorker, workers, standby}}));
}

std::vector<std::string> names(std::span<const Slot> slots) {
  std::vector<std::string> names;
  for (const Slot& slot : slots) names.push_back(slot.name());
  return names;
}
std::vector<std::string> names(const std::vector<Slot*>& slots) {
  std::vector<std::string> names;
  for (const Slot* slot : slots) names.push_back(slot->name());
  return names;
}

// A newcomer that waits, or with a rank one that trains.
void attach(Slot& slot, int rank = -1) {
  slot.hello.emplace();
  slot.stream = {1};
  slot.rank = rank;
  slot.viewed = rank >= 0;
  slot.phase = rank < 0 ? Phase::kWaiting : Phase::kTraining;
}

TEST(PlacesTest, ObserversComeBehindTheMembers) {
  Places places(
      config_of({{Role::kEvaluator, 1}, {Role::kServer, 1}, {Role::kWorker, 2}, {Role::kChief, 1}}));
  EXPECT_THAT(names(places.members()), ElementsAre("chief-0", "worker-0", "worker-1", "ps-0"));
  EXPECT_THAT(names(places.slots()), ElementsAre("chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0"));
  EXPECT_EQ(places.members()[1].incarnation, 3);
  EXPECT_EQ(places.slots()[4].incarnation, 0) << "an observer outlives attempts";
}

TEST(PlacesTest, WorkersThatAreTooManyAreSurplusUntilTheyAreRemoved) {
  Places places = ring(3);
  EXPECT_EQ(places.set_workers(1, 0, 3), 3);
  EXPECT_EQ(places.most_trainers(), 2);
  EXPECT_TRUE(places.members()[3].surplus);
  places.remove_last_member();
  EXPECT_THAT(names(places.members()), ElementsAre("chief-0", "worker-0", "worker-1"));
  EXPECT_EQ(places.set_workers(4, 1, 3), 2);
  EXPECT_THAT(names(places.members()),
              ElementsAre("chief-0", "worker-0", "worker-1", "worker-2", "worker-3"));
  EXPECT_EQ(places.most_trainers(), 4) << "one stands by";
}

TEST(PlacesTest, NewcomersAreWantedWhereAViewHasRoom) {
  Places places = ring(3, 1);
  attach(places.members()[0], 0);
  attach(places.members()[1], 1);
  EXPECT_THAT(places.wanted_newcomers(), IsEmpty());
  attach(places.members()[2]);
  attach(places.members()[3]);
  EXPECT_THAT(names(places.wanted_newcomers()), ElementsAre("worker-1"));
}

TEST(PlacesTest, AViewIsFormedOfThoseThatTrainedAndOfNewcomersThatHaveTheState) {
  Places places = ring(2);
  attach(places.members()[0], 0);
  attach(places.members()[2]);
  places.members()[2].hello->set_catches_up(true);
  constexpr auto kOver = Places::Gathering::kOver;
  EXPECT_THAT(names(places.candidates(kOver, true, false)), ElementsAre("chief-0"));
  EXPECT_THAT(names(places.candidates(kOver, true, true)), ElementsAre("chief-0", "worker-1"));
  places.members()[2].catch_up = Slot::CatchUp::kDone;
  EXPECT_THAT(names(places.candidates(kOver, true, false)), ElementsAre("chief-0", "worker-1"));
}

TEST(PlacesTest, TheOnlyMemberThatHoldsTheStateKeepsItsPlace) {
  Places places = ring(1);
  places.add_successor({Role::kWorker, 0, 4});
  attach(places.members()[1], 0);
  places.members()[1].step = 12;
  attach(*places.successor());
  places.successor()->catch_up = Slot::CatchUp::kDone;
  EXPECT_THAT(places.wanted_newcomers(), IsEmpty());
  EXPECT_THAT(places.candidates(Places::Gathering::kOver, true, false), ElementsAre(&places.members()[1]));
  attach(places.members()[0], 1);
  EXPECT_THAT(places.wanted_newcomers(), IsEmpty()) << "a newcomer in the view has not told of a step";
  places.members()[0].step = 12;
  EXPECT_THAT(places.wanted_newcomers(), ElementsAre(places.successor()));
}

TEST(PlacesTest, AnEarlierViewIsGatheredOnceAllOfItAreHere) {
  Places places = ring(1);
  EXPECT_EQ(places.gathered_ring(), Places::Gathering::kOver) << "nobody tells of one";
  attach(places.members()[0]);
  places.members()[0].hello->set_held_generation(4);
  places.members()[0].hello->set_held_size(2);
  EXPECT_EQ(places.gathered_ring(), Places::Gathering::kWaits);
  attach(places.members()[1]);
  *places.members()[1].hello = *places.members()[0].hello;
  EXPECT_EQ(places.gathered_ring(), Places::Gathering::kWaits) << "their heartbeats tell whether they train";
  for (Slot& slot : places.members()) slot.held = Slot::Held::kTrains;
  EXPECT_EQ(places.gathered_ring(), Places::Gathering::kAdopts);
  EXPECT_EQ(places.common_view(), 4U);
}

}  // namespace
}  // namespace paceline::coordinator
