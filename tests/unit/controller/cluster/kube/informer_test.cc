#include "controller/cluster/kube/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/text.h"
#include "controller/cluster/kube/object_store.h"
#include "tests/support/fake_api_server.h"
#include "tests/unit/controller/cluster/kube/long_lines.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;

struct Thing {
  std::string key, job_key, uid, resource_version;
  bool operator==(const Thing&) const = default;
};

std::optional<Thing> decode(const Json& json) {
  const std::string& name = text_at(json, {"metadata", "name"});
  if (name.empty()) return std::nullopt;
  const std::string ns = text_at(json, {"metadata", "namespace"}) + "/";
  return Thing{ns + name, ns + text_at(json, {"metadata", "labels", kJobNameLabel}),
               text_at(json, {"metadata", "uid"}), text_at(json, {"metadata", "resourceVersion"})};
}

Json thing(const std::string& name, const std::string& job) {
  return {{"metadata", {{"name", name}, {"labels", {{kJobNameLabel, job}}}}}};
}

// key -> "uid version"
using Contents = std::map<std::string, std::string>;

void add(Contents& contents, const Thing& value) {
  contents[value.key] = value.uid + " " + value.resource_version;
}

class InformerTest : public ::testing::Test {
 protected:
  FakeApiServer server_;
  Transport* transport_ = &server_;
  SystemClock clock_;
  Logger log_ = Logger::none();
  Guarded<std::vector<Duration>> waits_;
  ObjectStore<Thing> store_{decode};
  // What the store had for a job when the job was last told of.
  Guarded<std::map<std::string, Contents>> told_;
  Guarded<int> calls_{0};
  std::unique_ptr<ApiClient> api_;
  std::unique_ptr<Informer> informer_;

  void start(std::uint64_t seed = 1, ReflectorLimits limits = {}) {
    const Pause at_once = [this](Duration time, std::stop_token stop) {
      waits_.lock()->push_back(time);
      return !stop.stop_requested();
    };
    api_ = std::make_unique<ApiClient>(*transport_, clock_, seed, std::stop_token(), at_once);
    informer_ = std::make_unique<Informer>(
        *api_, Scope{kPods, "", kJobNameLabel}, store_, clock_, log_, seed,
        [this](const std::string& key) {
          (*told_.lock())[key] = of_store(key);
          ++*calls_.lock();
        },
        limits, at_once);
    informer_->start();
  }
  std::map<std::string, Contents> of_server() {
    std::map<std::string, Contents> jobs;
    for (const Json& object : server_.all("pods")) {
      if (const auto value = decode(object)) add(jobs[value->job_key], *value);
    }
    return jobs;
  }
  Contents of_store(const std::string& job) {
    Contents contents;
    for (const auto& value : store_.of_job(job)) add(contents, *value);
    return contents;
  }
  std::map<std::string, Contents> of_store() {
    std::map<std::string, Contents> jobs;
    for (const std::string& key : store_.job_keys()) jobs[key] = of_store(key);
    return jobs;
  }
  // Waits, woken by what the informer tells, until the store is as the server.
  ::testing::AssertionResult agrees() {
    for (;;) {
      const int seen = *calls_.lock();
      if (of_store() == of_server()) return ::testing::AssertionSuccess();
      bool woken = false;
      calls_.lock_when([&](int calls) { return calls > seen; }, 20s, &woken);
      if (!woken) {
        return ::testing::AssertionFailure()
               << "nothing changed for 20 s, and the store has " << ::testing::PrintToString(of_store())
               << ", the server " << ::testing::PrintToString(of_server());
      }
    }
  }
};

TEST_F(InformerTest, ListsAndThenFollows) {
  server_.create("pods", "n", thing("a", "j"));
  start();
  ASSERT_TRUE(informer_->wait_synced(20s).ok());
  EXPECT_TRUE(agrees());
  server_.create("pods", "n", thing("b", "j"));
  server_.create("pods", "m", thing("a", "k"));
  EXPECT_TRUE(agrees());
  server_.change("pods", "n", "a", [](Json& pod) { pod["status"]["phase"] = "Running"; });
  server_.erase("pods", "n", "b");
  EXPECT_TRUE(agrees());
  EXPECT_EQ(server_.requests("limit="), 1);
  EXPECT_EQ(server_.requests("watch=true"), 1);
  EXPECT_TRUE(waits_.lock()->empty());
}

TEST_F(InformerTest, AListIsReadInPages) {
  for (int i = 0; i < 25; ++i) server_.create("pods", "n", thing(str_cat("p", i), str_cat("j", i % 3)));
  start(1, ReflectorLimits{.page = 10});
  ASSERT_TRUE(informer_->wait_synced(20s).ok());
  EXPECT_EQ(store_.size(), 25u);
  EXPECT_EQ(server_.requests("limit=10"), 3);
}

TEST_F(InformerTest, AnotherListTellsOnlyOfWhatChanged) {
  for (int i = 0; i < 100; ++i) server_.create("pods", "n", thing(str_cat("p", i), str_cat("j", i)));
  start();
  ASSERT_TRUE(informer_->wait_synced(20s).ok());
  ASSERT_TRUE(agrees());
  calls_.lock_when([](int calls) { return calls == 100; }, 20s);
  server_.set_faults([](const Request& request) {
    FakeApiServer::Fault fault;
    if (request.path.find("watch=true") != std::string::npos) fault.broken = absl::UnavailableError("down");
    return fault;
  });
  server_.end_watches(false);
  server_.erase("pods", "n", "p7");
  server_.create("pods", "n", thing("new", "fresh"));
  server_.compact();
  server_.set_faults({});
  EXPECT_TRUE(agrees());
  EXPECT_EQ(*calls_.lock_when([](int calls) { return calls >= 102; }, 20s), 102);
}

TEST_F(InformerTest, MissedSyncNamesItsReason) {
  server_.set_faults([](const Request&) {
    return FakeApiServer::Fault{
        .answer =
            Response{403, R"({"kind":"Status","reason":"Forbidden","message":"pods is forbidden"})", {}, ""}};
  });
  start();
  waits_.lock_when([](const auto& waits) { return waits.size() > 3; }, 20s);
  EXPECT_FALSE(informer_->synced());
  const absl::Status status = informer_->wait_synced(0s);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("403 Forbidden: pods is forbidden"));
  server_.set_faults({});
  EXPECT_TRUE(informer_->wait_synced(20s).ok());
}

TEST_F(InformerTest, AWatchWhoseLineIsTooLongIsEndedAndWhatChangesIsListed) {
  LongLines ill(server_);
  transport_ = &ill;
  log_ = Logger::to_stderr("informer", LogLevel::kWarning);
  ::testing::internal::CaptureStderr();
  server_.create("pods", "n", thing("a", "j"));
  start();
  EXPECT_TRUE(informer_->wait_synced(20s).ok());
  EXPECT_TRUE(agrees());
  server_.create("pods", "n", thing("b", "j"));
  server_.change("pods", "n", "a", [](Json& pod) { pod["status"]["phase"] = "Running"; });
  EXPECT_TRUE(agrees()) << "a list says what no watch does";
  bool repeated = false;
  ill.seen.lock_when([](const auto& seen) { return seen.lines >= 7; }, 60s, &repeated);
  EXPECT_TRUE(repeated) << "it tries again";
  ill.seen.lock()->ill = false;
  server_.create("pods", "n", thing("c", "k"));
  server_.erase("pods", "n", "b");
  EXPECT_TRUE(agrees());
  const int lists = server_.requests("limit=");
  for (int i = 0; i < 3; ++i) {
    server_.change("pods", "n", "c", [&](Json& pod) { pod["status"]["n"] = i; });
    EXPECT_TRUE(agrees());
  }
  EXPECT_LE(server_.requests("limit="), lists + 1) << "watches tell of changes again";
  informer_.reset();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("the watch failed: a watch event longer than 8388608 bytes"));
  auto seen = ill.seen.lock();
  EXPECT_LE(seen->taken, kMaxWatchLineBytes + LongLines::kPiece);
  EXPECT_LE(seen->memory, 4 * kMaxWatchLineBytes) << "of a line of " << LongLines::kLine;
  EXPECT_LE(seen->kept, kMaxWatchLineBytes / 8);
  EXPECT_EQ(waits_.lock()->size(), static_cast<std::size_t>(seen->lines)) << "it waits after each";
  RecordProperty("memory_of_a_line", std::to_string(seen->memory));
}

TEST_F(InformerTest, ItStopsWhateverItDoes) {
  start();
  ASSERT_TRUE(informer_->wait_synced(20s).ok());
  informer_.reset();  // in a silent watch
  api_ = std::make_unique<ApiClient>(server_, clock_, 1);
  server_.set_faults(
      [](const Request&) { return FakeApiServer::Fault{.broken = absl::UnavailableError("down")}; });
  Informer waiting(
      *api_, Scope{kPods, "", ""}, store_, clock_, Logger::none(), 1, [](const std::string&) {},
      ReflectorLimits{.first_wait = 1h, .longest_wait = 1h});
  const int before = server_.requests("GET");
  waiting.start();
  while (server_.requests("GET") == before) std::this_thread::yield();
}  // in a long wait

// ---- the property: whatever happens in whatever order, the store becomes what the server has, and the last
// thing that was told of each job is the last that happened to it.

struct Chaos {
  FakeApiServer& server;
  Rng rng;
  int names = 12;
  std::uint64_t highest = 1000;
  bool went_back = false;

  std::string name() { return str_cat("p", rng.below(static_cast<std::uint64_t>(names))); }
  std::string ns() { return rng.below(3) == 0 ? "m" : "n"; }

  void change_something() {
    const std::string where = ns(), which = name();
    switch (rng.below(5)) {
      case 0:
      case 1:
        if (!server.find("pods", where, which)) {
          server.create("pods", where, thing(which, str_cat("j", rng.below(3))));
        }
        break;
      case 2:
      case 3: {
        const std::uint64_t job = rng.below(40);
        server.change("pods", where, which, [&](Json& pod) {
          pod["status"]["n"] = rng.below(1000);
          if (job < 3) pod["metadata"]["labels"][kJobNameLabel] = str_cat("j", job);
        });
        break;
      }
      default:
        server.erase("pods", where, which);
    }
  }
  // Where a server's numbers come to where another's were, nobody can tell their states apart: so new numbers
  // are above all that ever were, or, once, far below.
  void restart() {
    if (!went_back && rng.below(2) == 0) {
      went_back = true;
      return server.restart(rng.below(100));
    }
    highest += 1000;
    server.restart(highest);
  }
  void break_something() {
    switch (rng.below(6)) {
      case 0:
        return server.compact();
      case 1:
        return restart();
      case 2:
        return server.send_bookmarks();
      default:
        return server.end_watches(rng.below(2) == 0);
    }
  }
};

FakeApiServer::Fault random_fault(Rng& rng) {
  FakeApiServer::Fault fault;
  fault.expired_by_event = rng.below(2) == 0;
  const Response kAnswers[] = {{500, "oops", std::nullopt, ""},
                               {429, "", 1s, ""},
                               {410, "", std::nullopt, ""},
                               {200, "<html>", std::nullopt, ""}};
  const std::uint64_t kind = rng.below(12);
  if (kind == 0) {
    fault.broken = absl::UnavailableError("no connection");
  } else if (kind <= std::size(kAnswers)) {
    fault.answer = kAnswers[kind - 1];
  } else if (kind <= 8) {
    fault.cut_after = rng.below(4000);
    if (kind == 8) fault.garbage_after = std::string("\n{\"type\":\x01garbage\n", 19);
  }
  return fault;
}

class InformerPropertyTest : public InformerTest, public ::testing::WithParamInterface<std::uint64_t> {};

TEST_P(InformerPropertyTest, TheStoreBecomesWhatTheServerHas) {
  const std::uint64_t seed = GetParam();
  SCOPED_TRACE(str_cat("seed ", seed));
  Chaos chaos{server_, Rng(seed, 0)};
  Guarded<Rng> faults(seed, std::uint64_t{1});
  for (int i = 0; i < 10; ++i) chaos.change_something();
  server_.set_faults([&](const Request&) { return random_fault(*faults.lock()); });
  start(seed, ReflectorLimits{.page = 3});
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 60; ++i) {
      chaos.change_something();
      if (chaos.rng.below(10) == 0) chaos.break_something();
      // Lets the informer see some of the states, not only the last.
      if (chaos.rng.below(8) == 0) {
        const int seen = *calls_.lock();
        calls_.lock_when([&](int calls) { return calls > seen; }, 1ms);
      }
    }
    server_.set_faults({});
    server_.send_bookmarks();
    ASSERT_TRUE(agrees()) << "in round " << round;
    server_.set_faults([&](const Request&) { return random_fault(*faults.lock()); });
  }
  server_.set_faults({});
  informer_.reset();
  const auto told = *told_.lock();
  for (const auto& [key, contents] : told) {
    EXPECT_EQ(contents, of_store(key)) << "of " << key << " something changed after it was told of";
  }
  for (const auto& [key, contents] : of_store()) EXPECT_TRUE(told.contains(key)) << key;
}

INSTANTIATE_TEST_SUITE_P(Seeds, InformerPropertyTest, ::testing::Range<std::uint64_t>(1, 13));

}  // namespace
}  // namespace paceline::kube
