#include "controller/certificates/certificate_keeper.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"

namespace paceline::certificates {

absl::StatusOr<std::unique_ptr<CertificateKeeper>> CertificateKeeper::start(FindAuthority find_authority,
                                                                            std::vector<std::string> names,
                                                                            const Clock& clock, Logger log) {
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "paceline-tls-XXXXXX").string();
  if (error || ::mkdtemp(folder.data()) == nullptr)
    return absl::UnavailableError(str_cat("no folder for the certificate in ", folder, ": ",
                                          error ? error.message() : std::strerror(errno)));
  auto keeper = std::unique_ptr<CertificateKeeper>(new CertificateKeeper(
      std::move(find_authority), std::move(names), clock, std::move(log), std::move(folder)));
  PL_ASSIGN_OR_RETURN(const KeyPair nobodys, make_authority("nobody", clock.wall_now(), kValid));
  PL_RETURN_IF_ERROR(keeper->write(nobodys));
  keeper->thread_ = std::jthread([&it = *keeper](const std::stop_token& stop) { it.run(stop); });
  return keeper;
}

CertificateKeeper::CertificateKeeper(FindAuthority find_authority, std::vector<std::string> names,
                                     const Clock& clock, Logger log, std::string folder)
    : find_authority_(std::move(find_authority)),
      names_(std::move(names)),
      clock_(clock),
      log_(std::move(log)),
      folder_(std::move(folder)) {}

CertificateKeeper::~CertificateKeeper() {
  state_.lock()->ends = true;
  thread_ = {};
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string CertificateKeeper::authority() {
  return state_.lock()->authority;
}

bool CertificateKeeper::wait(Duration limit) {
  bool held = false;
  state_.lock_when([](const State& state) { return !state.authority.empty(); }, limit, &held);
  return held;
}

void CertificateKeeper::run(const std::stop_token& stop) {
  std::string told;
  while (!stop.stop_requested()) {
    const auto authority = renew();
    if (authority.ok()) {
      state_.lock()->authority = *authority;
      told.clear();
    } else if (std::string why(authority.status().message()); why != told) {
      told = std::move(why);
      log_.warning(str_cat("no certificate: ", told, "; it is tried again"), {{"reason", "Tls"}});
    }
    state_.lock_when([](const State& state) { return state.ends; }, authority.ok() ? kValid / 3 * 2 : kRetry);
  }
}

absl::StatusOr<std::string> CertificateKeeper::renew() {
  PL_ASSIGN_OR_RETURN(const KeyPair authority, find_authority_());
  PL_RETURN_IF_ERROR(write(authority));
  return authority.certificate_pem;
}

absl::Status CertificateKeeper::write(const KeyPair& authority) const {
  PL_ASSIGN_OR_RETURN(const KeyPair pair, issue(authority, names_, clock_.wall_now(), kValid));
  // A reader that finds the new one of them alone finds both when it looks again.
  PL_RETURN_IF_ERROR(write_file_atomically(files().key, pair.key_pem));
  return write_file_atomically(files().certificate, pair.certificate_pem);
}

}  // namespace paceline::certificates
