// Two ends of a TLS session, and between them the test, which hears, and changes, all that is on the wire.

#include "runtime/transport/tls_session.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/unique_fd.h"

namespace paceline::transport {
namespace {

Key key_of(std::uint8_t fill) {
  Key key;
  key.fill(fill);
  return key;
}

class TlsSessionTest : public ::testing::Test {
 protected:
  struct End {
    UniqueFd own, middle;
    std::unique_ptr<TlsSession> session;
  };
  void open(const Key& server, const Key& client, std::uint64_t rekey_bytes = kRekeyBytes) {
    for (const int at : {0, 1}) {
      int pair[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
      ends_[at].own.reset(pair[0]);
      ends_[at].middle.reset(pair[1]);
      auto session = TlsSession::make(pair[0], at == 0 ? Side::kServer : Side::kClient,
                                      at == 0 ? server : client, rekey_bytes);
      ASSERT_TRUE(session.ok()) << session.status();
      ends_[at].session = *std::move(session);
    }
  }
  TlsSession& server() { return *ends_[0].session; }
  TlsSession& client() { return *ends_[1].session; }

  // Carries what there is to the other end. False: there was nothing.
  bool carry() {
    bool any = false;
    for (const int from : {0, 1}) {
      std::array<char, 4096> bytes;
      const ssize_t got = ::recv(ends_[from].middle.get(), bytes.data(), bytes.size(), 0);
      if (got <= 0) continue;
      any = true;
      wire_.append(bytes.data(), static_cast<std::size_t>(got));
      if (change_) change_(bytes.data(), static_cast<std::size_t>(got));
      EXPECT_EQ(
          ::send(ends_[1 - from].middle.get(), bytes.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL),
          got);
    }
    return any;
  }
  // Until both have ended well, or one in error.
  void shake_hands(absl::StatusOr<bool> (&results)[2]) {
    results[0] = results[1] = false;
    const auto goes_on = [](const absl::StatusOr<bool>& result) { return result.ok() && !*result; };
    do {
      for (const int at : {1, 0}) {
        if (goes_on(results[at])) results[at] = ends_[at].session->shake_hands();
      }
    } while (carry());
  }
  void connect(std::uint64_t rekey_bytes = kRekeyBytes) {
    ASSERT_NO_FATAL_FAILURE(open(key_of(1), key_of(1), rekey_bytes));
    absl::StatusOr<bool> results[2];
    shake_hands(results);
    ASSERT_TRUE(results[0].ok() && *results[0]) << results[0].status();
    ASSERT_TRUE(results[1].ok() && *results[1]) << results[1].status();
  }
  // Sends by pieces of any size, and reads likewise. What came; an error ends it.
  std::string exchange(TlsSession& from, TlsSession& to, const std::string& text, absl::Status& status) {
    Rng rng(7, 0);
    std::string got;
    std::size_t sent = 0;
    while (status.ok() && got.size() < text.size()) {
      if (sent < text.size()) {
        std::vector<iovec> pieces;
        for (std::size_t at = sent; at < text.size(); at += pieces.back().iov_len) {
          const std::size_t most = pieces.size() < 3 ? 1 + rng.below(30'000) : text.size();
          pieces.push_back({const_cast<char*>(text.data()) + at, std::min(text.size() - at, most)});
        }
        const auto taken = from.write_some(pieces);
        status = taken.status();
        if (!taken.ok()) break;
        sent += *taken;
      }
      carry();
      std::string first(1 + rng.below(100), '\0'), second(1 + rng.below(30'000), '\0');
      const iovec pieces[] = {{first.data(), first.size()}, {second.data(), second.size()}};
      const auto read = to.read_some(pieces);
      status = read.status();
      if (read.ok()) got += (first + second).substr(0, *read);
    }
    return got;
  }
  static std::string noise(std::size_t size) {
    Rng rng(3, 0);
    std::string text(size, '\0');
    for (char& each : text) each = static_cast<char>(rng.below(256));
    return text;
  }

  std::array<End, 2> ends_;
  std::string wire_;  // all that went over it, both ways
  std::function<void(char* bytes, std::size_t size)> change_;
};

TEST_F(TlsSessionTest, BytesArriveInOrderWhateverTheirPieces) {
  ASSERT_NO_FATAL_FAILURE(connect());
  const std::string text = noise(3'000'000);
  absl::Status status;
  EXPECT_TRUE(exchange(client(), server(), text, status) == text) << status;
  EXPECT_TRUE(exchange(server(), client(), text, status) == text) << status;
}

TEST_F(TlsSessionTest, WireShowsNothingOfIt) {
  ASSERT_NO_FATAL_FAILURE(connect());
  const std::string pattern = "gradient";
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += pattern;
  absl::Status status;
  EXPECT_EQ(exchange(client(), server(), text, status), text) << status;
  EXPECT_GT(wire_.size(), text.size());
  EXPECT_EQ(wire_.find(pattern), std::string::npos);
  EXPECT_NE(wire_.find("paceline link"), std::string::npos) << "the key's name is no secret";
}

TEST_F(TlsSessionTest, KeysAreReplacedWhileBytesFlow) {
  ASSERT_NO_FATAL_FAILURE(connect(/*rekey_bytes=*/100'000));
  const std::string text = noise(3'000'000);
  absl::Status status;
  EXPECT_TRUE(exchange(client(), server(), text, status) == text) << status;
}

TEST_F(TlsSessionTest, AnotherKeyIsRefusedAtBothEnds) {
  ASSERT_NO_FATAL_FAILURE(open(key_of(1), key_of(2)));
  absl::StatusOr<bool> results[2];
  shake_hands(results);
  EXPECT_EQ(results[0].status().code(), absl::StatusCode::kPermissionDenied) << results[0].status();
  EXPECT_EQ(results[1].status().code(), absl::StatusCode::kPermissionDenied) << results[1].status();
}

TEST_F(TlsSessionTest, PlainBytesAreNoHandshake) {
  ASSERT_NO_FATAL_FAILURE(open(key_of(1), key_of(1)));
  const std::string plain(400, 'P');
  ASSERT_EQ(::send(ends_[0].middle.get(), plain.data(), plain.size(), MSG_NOSIGNAL), 400);
  EXPECT_EQ(server().shake_hands().status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(TlsSessionTest, ChangedBytesAreNotHandedOut) {
  ASSERT_NO_FATAL_FAILURE(connect());
  change_ = [](char* bytes, std::size_t size) { bytes[size / 2] ^= 1; };
  const std::string text = noise(1'000'000);
  absl::Status status;
  const std::string got = exchange(client(), server(), text, status);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_TRUE(text.starts_with(got));
}

TEST_F(TlsSessionTest, EndOfTheConnectionIsNamed) {
  ASSERT_NO_FATAL_FAILURE(connect());
  ends_[0].middle.reset();
  std::byte byte;
  const iovec piece{&byte, 1};
  const auto read = server().read_some({&piece, 1});
  EXPECT_EQ(read.status().code(), absl::StatusCode::kUnavailable) << read.status();
}

TEST_F(TlsSessionTest, RestOfARecordIsHeldForTheNextRead) {
  ASSERT_NO_FATAL_FAILURE(connect());
  const iovec out{const_cast<char*>("ab"), 2};
  ASSERT_EQ(client().write_some({&out, 1}).value_or(0), 2U);
  carry();
  EXPECT_EQ(server().held(), 0U);
  char letter = 0;
  const iovec in{&letter, 1};
  ASSERT_EQ(server().read_some({&in, 1}).value_or(0), 1U);
  EXPECT_EQ(server().held(), 1U);
  ASSERT_EQ(server().read_some({&in, 1}).value_or(0), 1U);
  EXPECT_EQ(letter, 'b');
  EXPECT_EQ(server().held(), 0U);
  EXPECT_EQ(server().read_some({&in, 1}).value_or(9), 0U);
}

// OpenSSL finds no algorithm that is good enough, as on a machine in FIPS mode.
TEST(TlsSessionRefusalTest, MachineThatForbidsItsAlgorithmsIsNoLackOfMemory) {
  ASSERT_EQ(EVP_default_properties_enable_fips(nullptr, 1), 1);
  const absl::Status refused = TlsSession::make(-1, Side::kClient, key_of(1)).status();
  ASSERT_EQ(EVP_default_properties_enable_fips(nullptr, 0), 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_TRUE(TlsSession::make(-1, Side::kClient, key_of(1)).ok());
}

}  // namespace
}  // namespace paceline::transport
