#pragma once

// A cluster in memory and a Call on it, for the tests of cli/cluster.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "cli/cluster/call.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/times.h"
#include "tests/support/fake_api_server.h"
#include "tests/unit/cli/cluster/job_json.h"

namespace paceline::cli {

// Moves only when a test, or a pause, says so; begins five minutes after the fake server's objects were made.
class CallClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(elapsed_); }
  WallTime wall_now() const override { return *kube::parse_time("2026-01-31T12:05:00Z") + elapsed_; }
  void advance(Duration by) { elapsed_ += by; }

 private:
  Duration elapsed_{};
};

class ClusterTest : public ::testing::Test {
 protected:
  FakeApiServer server_;
  CallClock clock_;
  std::stop_source stop_;
  std::function<void()> on_pause_;  // what happens while the command waits
  kube::Pause pause_ = [this](Duration time, std::stop_token stop) {
    clock_.advance(time);
    if (on_pause_) on_pause_();
    return !stop.stop_requested();
  };
  kube::ApiClient api_{server_, clock_, 1, stop_.get_token(), pause_};
  JobClient client_{api_, "https://10.0.0.1:6443 (context dev of /home/me/.kube/config)", stop_.get_token()};
  Terminal terminal_;
  std::ostringstream out_, err_;
  Call call_ = call_by(client_, pause_);

  Call call_by(JobClient& client, const kube::Pause& pause) {
    return {.jobs = client,
            .client = &client,
            .stop = stop_.get_token(),
            .ns = "team-a",
            .program = "paceline",
            .clock = clock_,
            .terminal = terminal_,
            .out = out_,
            .err = err_,
            .pause = pause};
  }

  // The text that a command prints, which succeeds.
  std::string printed(const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status << err_.str();
    std::string text = out_.str();
    out_.str("");
    return text;
  }
  std::string described(const std::string& name) { return printed(describe_job(call_, name)); }
  std::string explained(const std::string& name) { return printed(explain_job(call_, name)); }
  std::string top_of(const std::string& name) {
    return printed(top_job(call_, {.name = name, .once = true}));
  }

  void add_job(const kube::Json& job, const std::string& ns = "team-a") {
    server_.create("trainingjobs", ns, job);
  }
  void add_pod(const kube::Json& pod) { server_.create("pods", "team-a", pod); }
  void add_event(const std::string& name, const std::string& kind, const std::string& object,
                 const std::string& reason, const std::string& time) {
    server_.create("events", "team-a", event_object(name, kind, object, reason, "2026-01-31T" + time + "Z"));
  }
  kube::Json stored() const { return *server_.find("trainingjobs", "team-a", "digits"); }
  void set_phase(const std::string& phase) {
    server_.change("trainingjobs", "team-a", "digits",
                   [&](kube::Json& job) { job["status"]["phase"] = phase; });
  }

  // Every request that `matches` is answered so.
  void answer(const std::string& matches, int status, const kube::Json& body) {
    answer_text(matches, status, body.dump());
  }
  void answer_text(const std::string& matches, int status, const std::string& body) {
    server_.set_faults([=](const kube::Request& request) {
      FakeApiServer::Fault fault;
      if (request.path.find(matches) != std::string::npos)
        fault.answer = kube::Response{status, body, std::nullopt, "application/json"};
      return fault;
    });
  }
};

inline kube::Json refusal(int code, const std::string& reason, const std::string& message,
                          kube::Json details = nullptr) {
  return {{"kind", "Status"},
          {"code", code},
          {"reason", reason},
          {"message", message},
          {"details", std::move(details)}};
}

}  // namespace paceline::cli
