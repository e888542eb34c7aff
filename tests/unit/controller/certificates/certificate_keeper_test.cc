#include "controller/certificates/certificate_keeper.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "tests/support/fake_clock.h"

namespace paceline::certificates {
namespace {

constexpr Duration kLong = std::chrono::minutes(1);

TEST(CertificateKeeperTest, ProbesAreAnsweredBeforeTheAuthorityIsThere) {
  const FakeClock clock;
  const auto authority = make_authority("a", clock.wall_now(), kValid * 2);
  int asked = 0;
  const auto keeper = CertificateKeeper::start(
      [&]() -> absl::StatusOr<KeyPair> {
        if (asked++ == 0) return absl::UnavailableError("not yet");
        return *authority;
      },
      {"DNS:a"}, clock, Logger::none());
  ASSERT_TRUE(keeper.ok()) << keeper.status();
  EXPECT_TRUE(read_file((*keeper)->files().certificate, 1 << 16).ok()) << "for probes, at once";
  ASSERT_TRUE((*keeper)->wait(kLong));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ((*keeper)->authority(), authority->certificate_pem);
  const CertificateFiles files = (*keeper)->files();
  const auto certificate = read_file(files.certificate, 1 << 16);
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_TRUE(expiry_of(*certificate).ok());
  EXPECT_TRUE(read_file(files.key, 1 << 16).ok());
  const auto folder = std::filesystem::path(files.key).parent_path();
  EXPECT_EQ(std::filesystem::status(folder).permissions(), std::filesystem::perms::owner_all);
}

TEST(CertificateKeeperTest, FilesGoWithTheirKeeper) {
  const FakeClock clock;
  std::filesystem::path folder;
  {
    const auto keeper = CertificateKeeper::start(
        [&] { return make_authority("a", clock.wall_now(), kValid); }, {"DNS:a"}, clock, Logger::none());
    ASSERT_TRUE(keeper.ok()) << keeper.status();
    folder = std::filesystem::path((*keeper)->files().key).parent_path();
    EXPECT_TRUE(std::filesystem::exists(folder));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

}  // namespace
}  // namespace paceline::certificates
