#include "cli/cluster/dashboard_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cli/cluster/cluster_fixture.h"

namespace paceline::cli {
namespace {

using ::testing::HasSubstr;

// Answers each path that it knows; others are not found.
class FakeDashboard final : public kube::Transport {
 public:
  std::map<std::string, kube::Response> answers;
  absl::StatusOr<kube::Response> call(const kube::Request& request) override {
    const auto found = answers.find(request.path);
    if (found != answers.end()) return found->second;
    return kube::Response{404, R"({"error": {"code": "NotFound", "message": "there is no such path"}})"};
  }
  absl::StatusOr<kube::Response> stream(const kube::Request& request,
                                        const std::function<bool(std::string_view)>&,
                                        std::stop_token) override {
    return call(request);
  }
};

class DashboardClientTest : public ClusterTest {
 protected:
  void answer_past(const kube::Json& jobs, bool more = false) {
    dashboard_->answers["/api/v1/past?objects=1&namespace=team-a"] = {
        200, kube::Json{{"jobs", jobs}, {"more", more}}.dump()};
    call_.dashboard = &client_of_dashboard_;
  }
  static kube::Json deleted_job(const std::string& name, const std::string& uid) {
    kube::Json job = job_object(name, "Running");
    job["metadata"]["uid"] = uid;
    job["metadata"]["namespace"] = "team-a";
    job["metadata"]["annotations"][kube::kDeletedAnnotation] = "2026-01-31T12:04:00Z";
    return job;
  }
  FakeDashboard* dashboard_ = new FakeDashboard;  // the client's
  DashboardClient client_of_dashboard_{std::unique_ptr<kube::Transport>(dashboard_), "http://127.0.0.1:1"};
};

TEST_F(DashboardClientTest, DeletedJobsAreListedBehindTheOthers) {
  add_job(job_object("digits", "Running"));
  answer_past(kube::Json::array({deleted_job("digits", "1"), deleted_job("old", "2")}), true);
  EXPECT_EQ(
      printed(get_jobs(call_, {.output = "name", .all = true})),
      "trainingjob.paceline.dev/digits\ntrainingjob.paceline.dev/digits\ntrainingjob.paceline.dev/old\n");
  EXPECT_NE(err_.str(), "");  // there are more
  EXPECT_THAT(printed(get_jobs(call_, {.all = true})), HasSubstr(", deleted"));
}

TEST_F(DashboardClientTest, AllThatHadANameAreGot) {
  add_job(job_object("digits", "Running"));
  answer_past(kube::Json::array({deleted_job("digits", "1"), deleted_job("old", "2")}));
  const auto both =
      kube::Json::parse(printed(get_jobs(call_, {.name = "digits", .output = "json", .all = true})));
  EXPECT_EQ(both["items"].size(), 2);
  const auto gone =
      kube::Json::parse(printed(get_jobs(call_, {.name = "old", .output = "json", .all = true})));
  ASSERT_EQ(gone["items"].size(), 1);
  EXPECT_EQ(gone["items"][0]["metadata"]["uid"], "2");
  EXPECT_TRUE(absl::IsNotFound(get_jobs(call_, {.name = "none", .all = true})));
}

TEST_F(DashboardClientTest, WithoutADashboardThereAreNoDeletedJobs) {
  EXPECT_TRUE(absl::IsInvalidArgument(get_jobs(call_, {.all = true})));
}

TEST_F(DashboardClientTest, RefusalsKeepTheirCodesAndWords) {
  struct {
    int status;
    absl::StatusCode code;
  } cases[] = {{400, absl::StatusCode::kInvalidArgument},  {401, absl::StatusCode::kUnauthenticated},
               {403, absl::StatusCode::kPermissionDenied}, {404, absl::StatusCode::kNotFound},
               {503, absl::StatusCode::kUnavailable},      {500, absl::StatusCode::kUnavailable}};
  for (const auto& c : cases) {
    dashboard_->answers["/api/v1/past"] = {c.status,
                                           R"({"error": {"message": "why", "help": "what helps"}})"};
    const absl::Status status = client_of_dashboard_.get("/past").status();
    EXPECT_EQ(status.code(), c.code);
    EXPECT_THAT(std::string(status.message()), HasSubstr("why; what helps"));
  }
}

TEST_F(DashboardClientTest, AnotherServerIsToldFromADashboard) {
  for (const int status : {200, 404}) {
    dashboard_->answers["/api/v1/past"] = {status, "<html>"};
    EXPECT_TRUE(absl::IsUnavailable(client_of_dashboard_.get("/past").status())) << status;
  }
}

TEST(DashboardUrlTest, TokensAreNotSentInTheClear) {
  for (const char* url : {"https://paceline.example.com", "https://10.0.0.1:8090/paceline",
                          "http://127.0.0.1:8090", "http://localhost", "http://[::1]:8090", "http://[::1]"})
    EXPECT_TRUE(check_dashboard_url(url).ok()) << url;
  for (const char* url :
       {"", "https://", "127.0.0.1:8090", "http://", "http://10.0.0.1:8090", "http://127.0.0.1.example.com",
        "http://localhost@example.com", "http://127.0.0.1:8090@example.com", "ftp://localhost"})
    EXPECT_TRUE(absl::IsInvalidArgument(check_dashboard_url(url))) << url;
}

TEST(DashboardUrlTest, UsersWithoutATokenAreTold) {
  const CallClock clock;
  const auto credentials = kube::fixed_credentials({.headers = {{"Impersonate-User", "ada"}}});
  EXPECT_TRUE(
      absl::IsUnauthenticated(DashboardClient::open("http://127.0.0.1:1", "", *credentials, clock).status()));
}

}  // namespace
}  // namespace paceline::cli
