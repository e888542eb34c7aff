#include "controller/cluster/kube/identity_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_certificates.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class IdentityFilesTest : public ::testing::Test {
 protected:
  IdentityFilesTest() {
    write(first_);
    write("ca", authority_.certificate_pem());
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file_atomically(folder_.path() + "/" + name, text).ok());
  }
  void write(const KeyPair& pair) {
    write("crt", pair.certificate_pem);
    write("key", pair.key_pem);
  }
  absl::StatusOr<std::unique_ptr<Credentials>> open(FixedIdentity inner = {}) {
    const auto path = [this](const char* name) { return PemSource{"", folder_.path() + "/" + name}; };
    return with_files(
        fixed_credentials(std::move(inner)),
        {.certificate = path("crt"), .key = path("key"), .ca = path("ca"), .where = "user \"u\": "}, clock_,
        Logger::none());
  }
  IdentityPtr get(Credentials& credentials) {
    auto identity = credentials.get(Deadline::after(clock_.now(), 1min), {});
    EXPECT_TRUE(identity.ok()) << identity.status();
    return *identity;
  }

  TemporaryFolder folder_;
  FakeClock clock_;
  const TestAuthority authority_{"kubernetes"}, next_{"kubernetes"};
  const KeyPair first_ = authority_.issue("me", ""), second_ = authority_.issue("me", "");
};

TEST_F(IdentityFilesTest, RenewedFileIsAnotherIdentity) {
  auto credentials = open({.headers = {{"Authorization", "Bearer t"}}});
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  const IdentityPtr first = get(**credentials);
  EXPECT_EQ(first->certificate_pem, first_.certificate_pem);
  EXPECT_EQ(first->key_pem, first_.key_pem);
  EXPECT_EQ(first->ca_pem, authority_.certificate_pem());
  EXPECT_EQ(first->headers.size(), 1u);
  write(second_);
  clock_.advance(kPemFileAge - 1s);
  EXPECT_EQ(get(**credentials)->number, first->number);
  clock_.advance(1s);
  const IdentityPtr second = get(**credentials);
  EXPECT_NE(second->number, first->number) << "connections are told apart by it";
  EXPECT_EQ(second->certificate_pem, second_.certificate_pem);
  EXPECT_EQ(second->key_pem, second_.key_pem);
  clock_.advance(kPemFileAge);
  EXPECT_EQ(get(**credentials)->number, second->number) << "the same files are the same identity";
  write("ca", authority_.certificate_pem() + next_.certificate_pem());
  clock_.advance(kPemFileAge);
  EXPECT_EQ(get(**credentials)->ca_pem, authority_.certificate_pem() + next_.certificate_pem());
}

TEST_F(IdentityFilesTest, ARefusalIsAReasonToLook) {
  auto credentials = open();
  ASSERT_TRUE(credentials.ok());
  const IdentityPtr first = get(**credentials);
  write(second_);
  (*credentials)->refused(*first);
  EXPECT_EQ(get(**credentials)->number, first->number) << "not at once: it was read a moment ago";
  clock_.advance(kLeastTimeBetweenFetches);
  EXPECT_EQ(get(**credentials)->certificate_pem, second_.certificate_pem);
}

TEST_F(IdentityFilesTest, HalfOfARenewalAndWhatIsBrokenChangeNothing) {
  auto credentials = open();
  ASSERT_TRUE(credentials.ok());
  const std::uint64_t number = get(**credentials)->number;
  const auto serves_on = [&] {
    clock_.advance(kPemFileAge);
    return get(**credentials)->number == number;
  };
  write("crt", second_.certificate_pem);
  EXPECT_TRUE(serves_on()) << "the key is still the old one's";
  write("key", second_.key_pem.substr(0, second_.key_pem.size() / 2));
  EXPECT_TRUE(serves_on());
  write("key", "hello");
  EXPECT_TRUE(serves_on());
  ASSERT_EQ(::unlink((folder_.path() + "/key").c_str()), 0);
  EXPECT_TRUE(serves_on());
  write(second_);
  EXPECT_FALSE(serves_on());
  EXPECT_EQ(get(**credentials)->key_pem, second_.key_pem);
}

TEST_F(IdentityFilesTest, AnotherTokenAndAPluginsCertificateCount) {
  auto own = open({.certificate_pem = second_.certificate_pem, .key_pem = second_.key_pem});
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(get(**own)->certificate_pem, second_.certificate_pem) << "a plug-in knows better";
  EXPECT_EQ(get(**own)->ca_pem, authority_.certificate_pem());
  write("token", "one");
  auto rotating = with_files(token_file_credentials(folder_.path() + "/token", {}, clock_, Logger::none()),
                             {.certificate = {}, .key = {}, .ca = {"", folder_.path() + "/ca"}, .where = ""},
                             clock_, Logger::none());
  ASSERT_TRUE(rotating.ok());
  const IdentityPtr one = get(**rotating);
  EXPECT_EQ(one->headers.at(0).second, "Bearer one");
  write("token", "two");
  (*rotating)->refused(*one);
  clock_.advance(kLeastTimeBetweenFetches);
  EXPECT_EQ(get(**rotating)->headers.at(0).second, "Bearer two") << "the token's file hears of a 401, too";
}

TEST_F(IdentityFilesTest, FilesThatAreNotThereAreSaidAtOnce) {
  ASSERT_EQ(::unlink((folder_.path() + "/ca").c_str()), 0);
  EXPECT_THAT(std::string(open().status().message()), HasSubstr("user \"u\": certificate-authority"));
}

}  // namespace
}  // namespace paceline::kube
