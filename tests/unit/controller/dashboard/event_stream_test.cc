#include "controller/dashboard/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "base/text.h"
#include "controller/dashboard/log_stream.h"
#include "tests/support/fake_clock.h"

namespace paceline::dashboard {
namespace {

using kube::Json;

Json object(const std::string& name, int step) {
  return {{"metadata", {{"namespace", "a"}, {"name", name}, {"uid", name}}},
          {"status", {{"phase", "Running"}, {"progress", {{"step", step}}}}}};
}

struct Event {
  std::string id, name;
  Json data;
};

// The events in a stream's text.
std::vector<Event> events_in(const std::string& text) {
  std::vector<Event> events;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find("\n\n", begin)) != std::string::npos; begin = end + 2) {
    Event event;
    std::string block = text.substr(begin, end - begin) + "\n";
    std::size_t at = 0;
    for (std::size_t stop = 0; (stop = block.find('\n', at)) != std::string::npos; at = stop + 1) {
      const std::string line = block.substr(at, stop - at);
      if (line.starts_with("id: ")) event.id = line.substr(4);
      if (line.starts_with("event: ")) event.name = line.substr(7);
      if (line.starts_with("data: ")) event.data = Json::parse(line.substr(6));
    }
    if (!event.name.empty()) events.push_back(std::move(event));
  }
  return events;
}

class EventStreamTest : public ::testing::Test {
 protected:
  EventStreamTest() { put(object("x", 1)); }
  void put(Json changed) { board_.apply({.objects = {std::move(changed)}}); }
  std::vector<Event> next(EventStream& stream) {
    clock_.advance(Board::kEventInterval);
    const auto piece = stream.next(clock_.now());
    return piece.text == nullptr ? std::vector<Event>() : events_in(*piece.text);
  }
  FakeClock clock_;
  Board board_{clock_};
};

TEST_F(EventStreamTest, ReadersGetAllAndThenWhatChanges) {
  EventStream stream(board_, {.jobs = true}, "e", "");
  const auto first = next(stream);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].name, "jobs");
  EXPECT_EQ(first[0].data["full"], true);
  put(object("y", 1));
  const auto second = next(stream);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].data["full"], false);
  EXPECT_EQ(second[0].data["rows"].size(), 1U);
  EXPECT_TRUE(next(stream).empty());
}

TEST_F(EventStreamTest, ManyReadersTogetherGetNoMoreEventsThanFew) {
  std::vector<std::unique_ptr<EventStream>> streams;
  for (int i = 0; i < 100; ++i)
    streams.push_back(std::make_unique<EventStream>(board_, EventStream::Wish{.jobs = true}, "e", ""));
  const auto told = [&] {
    return std::ranges::count_if(streams,
                                 [&](auto& each) { return each->next(clock_.now()).text != nullptr; });
  };
  EXPECT_EQ(told(), 100);
  int events = 0;
  for (Duration passed{}; passed < 100 * Board::kStreamInterval; passed += Board::kEventInterval) {
    put(object("x", 2 + events));
    clock_.advance(Board::kEventInterval);
    events += static_cast<int>(told());
  }
  EXPECT_EQ(events, 100);
  streams.resize(2);
  put(object("x", 1000));
  clock_.advance(Board::kEventInterval);
  EXPECT_EQ(told(), 2);
}

TEST_F(EventStreamTest, ManyReadersHearOfTheEndSoon) {
  std::vector<std::unique_ptr<EventStream>> streams;
  for (int i = 0; i < 100; ++i)
    streams.push_back(std::make_unique<EventStream>(board_, EventStream::Wish{.jobs = true}, "e", ""));
  for (const auto& each : streams) EXPECT_NE(each->next(clock_.now()).text, nullptr);
  put(object("x", 2));
  clock_.advance(Board::kEventInterval);
  EXPECT_EQ(streams.back()->next(clock_.now()).text, nullptr);
  board_.hurry();
  EXPECT_NE(streams.back()->next(clock_.now()).text, nullptr);
}

// A viewer sees what a test says.
class SetSight final : public Sight {
 public:
  Seen look(TimePoint) override { return seen; }
  Seen seen;
};

TEST_F(EventStreamTest, StreamsEndWithTheirRightHoweverManyReadersThereAre) {
  std::vector<std::unique_ptr<EventStream>> others;
  for (int i = 0; i < 255; ++i)
    others.push_back(std::make_unique<EventStream>(board_, EventStream::Wish{.jobs = true}, "e", ""));
  const auto sight = std::make_shared<SetSight>();
  EventStream stream(board_, {.jobs = true}, "e", "", sight);
  EXPECT_FALSE(stream.next(clock_.now()).last);
  sight->seen.over = true;
  EXPECT_TRUE(stream.next(clock_.now()).last);
}

TEST_F(EventStreamTest, OtherNamespacesAreToldAtTheNextEvent) {
  const auto sight = std::make_shared<SetSight>();
  EventStream stream(board_, {.jobs = true}, "e", "", sight);
  EXPECT_EQ(next(stream).at(0).data["rows"].size(), 1U);
  sight->seen.namespaces = std::make_shared<const std::set<std::string>>();
  EXPECT_EQ(stream.next(clock_.now()).text, nullptr) << "so soon";
  const auto events = next(stream);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].data["full"], true);
  EXPECT_TRUE(events[0].data["rows"].empty());
}

TEST(EventStreamOfNothingTest, ReadersOfNoJobsHearOfThemOnce) {
  FakeClock clock;
  Board board(clock);
  EventStream stream(board, {.jobs = true}, "e", "");
  EXPECT_NE(stream.next(clock.now()).text, nullptr);
  clock.advance(Board::kEventInterval);
  EXPECT_EQ(stream.next(clock.now()).text, nullptr);
}

TEST_F(EventStreamTest, ReadersGoOnFromTheirLastEvent) {
  EventStream stream(board_, {.jobs = true}, "e", "");
  const std::string id = next(stream).at(0).id;
  put(object("y", 1));
  EventStream again(board_, {.jobs = true}, "e", id);
  const auto events = next(again);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].data["full"], false);
  EXPECT_EQ(events[0].data["rows"][0]["name"], "y");
  for (const char* other : {"other-1", "e-", "e-x", "e-999", "e-1 ", ""}) {
    EventStream anew(board_, {.jobs = true}, "e", other);
    EXPECT_EQ(next(anew).at(0).data["full"], true) << other;
  }
}

TEST_F(EventStreamTest, SlowReadersGetFewerEvents) {
  EventStream stream(board_, {.jobs = true}, "e", "");
  next(stream);
  for (int step = 2; step < 100; ++step) put(object("x", step));
  EXPECT_EQ(next(stream).size(), 1U);
  put(object("x", 100));
  EXPECT_EQ(stream.next(clock_.now()).text, nullptr) << "so soon";
}

TEST_F(EventStreamTest, OneJobIsTold) {
  EventStream stream(board_, {.job = "a/x"}, "e", "");
  const auto first = next(stream);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].name, "job");
  EXPECT_EQ(first[0].data["row"]["name"], "x");
  EXPECT_EQ(first[0].data["object"]["status"]["progress"]["step"], 1);
  EXPECT_TRUE(first[0].data["actions"].contains("suspend"));
  EXPECT_EQ(board_.looked_at(), std::vector<std::string>{"a/x"});
  put(object("y", 1));
  EXPECT_TRUE(next(stream).empty());
  board_.note_series("a/x", {1, 41});
  EXPECT_EQ(next(stream).at(0).data["from"], 0);
  board_.note_series("a/x", {2, 45});
  EXPECT_EQ(next(stream).at(0).data["from"], 42);
  board_.note_series("a/x", {3, 45});
  EXPECT_EQ(next(stream).at(0).data["from"], 45) << "such as an evaluation";
  board_.note_series("a/x", {4, 30});
  EXPECT_EQ(next(stream).at(0).data["from"], 30) << "it goes on from an earlier checkpoint";
}

TEST_F(EventStreamTest, AJobThatIsGoneIsToldOnceAndAgainWhenItIsBack) {
  EventStream stream(board_, {.job = "a/x"}, "e", "");
  next(stream);
  board_.apply({.removed = {"a/x"}});
  EXPECT_EQ(next(stream).at(0).data["removed"], true);
  put(object("y", 1));
  EXPECT_TRUE(next(stream).empty());
  put(object("x", 7));
  EXPECT_EQ(next(stream).at(0).data["object"]["status"]["progress"]["step"], 7);
}

TEST_F(EventStreamTest, TheLastEventAloneHasAnId) {
  EventStream stream(board_, {.jobs = true, .job = "a/x"}, "e", "");
  const auto events = next(stream);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_TRUE(events[0].id.empty()) << "whoever breaks off here has not had the job";
  EXPECT_FALSE(events[1].id.empty());
}

TEST_F(EventStreamTest, QuietStreamsPing) {
  EventStream stream(board_, {.jobs = true}, "e", "");
  next(stream);
  EXPECT_TRUE(next(stream).empty());
  clock_.advance(kPingInterval);
  EXPECT_EQ(next(stream).at(0).name, "ping");
  EXPECT_TRUE(next(stream).empty());
}

TEST_F(EventStreamTest, ReadersShareTheirTexts) {
  const Board::Text one = board_.jobs_since(0), other = board_.jobs_since(0);
  EXPECT_EQ(one.json, other.json);
}

TEST_F(EventStreamTest, LooksEnd) {
  board_.look("a/x");
  clock_.advance(Board::kLook);
  EXPECT_EQ(board_.looked_at().size(), 1U);
  clock_.advance(std::chrono::seconds(1));
  EXPECT_TRUE(board_.looked_at().empty());
  for (std::size_t i = 0; i < 2 * Board::kLooks; ++i) board_.look(str_cat("a/", i));
  EXPECT_EQ(board_.looked_at().size(), Board::kLooks);
}

}  // namespace
}  // namespace paceline::dashboard
