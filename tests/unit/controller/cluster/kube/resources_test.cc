#include "controller/cluster/kube/resources.h"

#include <gtest/gtest.h>

namespace paceline::kube {
namespace {

TEST(ResourcesTest, Paths) {
  EXPECT_EQ(path_of(kPods, "default", "a"), "/api/v1/namespaces/default/pods/a");
  EXPECT_EQ(path_of(kPods, ""), "/api/v1/pods");
  EXPECT_EQ(path_of(kPods, "n", "a", "log", {{"tailLines", "5"}, {"container", ""}}),
            "/api/v1/namespaces/n/pods/a/log?tailLines=5");
  EXPECT_EQ(path_of(kLeases, "n", "l"), "/apis/coordination.k8s.io/v1/namespaces/n/leases/l");
  EXPECT_EQ(path_of(kEvents, "n"), "/apis/events.k8s.io/v1/namespaces/n/events");
  EXPECT_EQ(path_of(kTrainingJobs, "n", "j", "status", {{"fieldManager", "x"}, {"force", "true"}}),
            "/apis/paceline.dev/v1alpha1/namespaces/n/trainingjobs/j/status?fieldManager=x&force=true");
}

TEST(ResourcesTest, NothingLeavesItsPlace) {
  EXPECT_EQ(path_of(kPods, "n", "../../secrets?x=y#z"),
            "/api/v1/namespaces/n/pods/..%2F..%2Fsecrets%3Fx%3Dy%23z");
  EXPECT_EQ(path_of(kPods, "..", "."), "/api/v1/namespaces/%2E%2E/pods/%2E");
  EXPECT_EQ(path_of(kPods, "", "", "", {{"labelSelector", "a/b=c&d"}, {"continue", "\xff +"}}),
            "/api/v1/pods?labelSelector=a%2Fb%3Dc%26d&continue=%FF%20%2B");
}

TEST(ResourcesTest, DnsLabels) {
  for (const char* good : {"a", "a-b", "0", "job-worker-0"}) EXPECT_TRUE(is_dns_label(good)) << good;
  for (const char* bad : {"", "-a", "a-", "A", "a.b", "a_b", "../a", "ä"})
    EXPECT_FALSE(is_dns_label(bad)) << bad;
  EXPECT_TRUE(is_dns_label(std::string(63, 'a')));
  EXPECT_FALSE(is_dns_label(std::string(64, 'a')));
}

TEST(ResourcesTest, RolesAreNamedInAnyCase) {
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator})
    EXPECT_EQ(role_named(role_name(role)), role);
  EXPECT_EQ(role_named("PS"), Role::kServer);
  EXPECT_EQ(role_named("Worker"), Role::kWorker);
  for (const char* none : {"", "work", "workers", "p\xd3"}) EXPECT_EQ(role_named(none), std::nullopt) << none;
}

}  // namespace
}  // namespace paceline::kube
