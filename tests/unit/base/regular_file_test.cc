#include "base/regular_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>

#include "base/text.h"
#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

class RegularFileTest : public ::testing::Test {
 protected:
  // What opening says of `path`, which is none; one that waits is set free, and fails the test.
  absl::Status refusal(const std::string& path, int flags) {
    auto opening = std::async(std::launch::async, [&] { return open_regular_file(path, flags).status(); });
    const bool came = opening.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    EXPECT_TRUE(came) << path << ": it waits for the other end";
    if (!came) UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    return opening.get();
  }

  const TemporaryFolder folder_;
};

TEST_F(RegularFileTest, AFileIsReadAndWrittenAndInheritedAsOthersAre) {
  const std::string path = folder_.path() + "/a";
  {
    const auto file = open_regular_file(path, O_WRONLY | O_CREAT | O_APPEND);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->size, 0u);
    EXPECT_EQ(::write(file->fd.get(), "12345", 5), 5);
    EXPECT_EQ(::fcntl(file->fd.get(), F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(::fcntl(file->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(open_regular_file(path)->size, 5u);
  EXPECT_EQ(read_regular_file(path, 5).value(), "12345");
  EXPECT_EQ(read_regular_file(path, 4).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(read_regular_file(path + "b", 4).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RegularFileTest, EndOfALongFileIsWholeLines) {
  const std::string path = folder_.path() + "/lines";
  const auto last = [&](std::string_view text, std::size_t limit) {
    std::ofstream(path) << text;
    return read_last_lines(path, limit).value();
  };
  EXPECT_EQ(last("", 4), "");
  EXPECT_EQ(last("ab\ncd", 5), "ab\ncd");
  EXPECT_EQ(last("ab\ncd\n", 5), "cd\n");
  EXPECT_EQ(last("ab\ncd\n", 3), "cd\n");
  EXPECT_EQ(last("ab\ncd\n", 2), "");
  EXPECT_EQ(last("abcdef", 3), "");
  EXPECT_EQ(last("ab\ncd\n", 0), "");
  EXPECT_EQ(read_last_lines(path + "2", 3).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RegularFileTest, IrregularFileIsRefusedWithoutBlocking) {
  const std::string pipe = folder_.path() + "/pipe", link = folder_.path() + "/link",
                    socket = folder_.path() + "/socket";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", link);
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(socket.size(), sizeof(address.sun_path));
  std::strcpy(address.sun_path, socket.c_str());
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const std::pair<std::string, std::string> cases[] = {{pipe, "a pipe"},
                                                       {link, "a pipe"},
                                                       {folder_.path(), "a folder"},
                                                       {socket, "a socket"},
                                                       {"/dev/null", "a device"}};
  for (const int flags : {O_RDONLY, O_WRONLY | O_APPEND, O_RDWR | O_CREAT}) {
    for (const auto& [path, kind] : cases) {
      const absl::Status status = refusal(path, flags);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path << ", " << flags << ": " << status;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(str_cat(path, " is ", kind, ", not a regular file")));
    }
  }
  EXPECT_THAT(std::string(read_regular_file(pipe, 10).status().message()), HasSubstr("a pipe"));
}

}  // namespace
}  // namespace paceline
