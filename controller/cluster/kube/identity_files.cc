#include "controller/cluster/kube/identity_files.h"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <utility>

#include "base/file.h"
#include "base/guarded.h"
#include "base/status.h"

namespace paceline::kube {

namespace {

struct Texts {
  std::string certificate, key, ca;
  bool operator==(const Texts&) const = default;
};

absl::StatusOr<Texts> read_all(const IdentityFiles& files) {
  Texts texts;
  PL_ASSIGN_OR_RETURN(texts.certificate,
                      read_pem(files.certificate, str_cat(files.where, "client-certificate")));
  PL_ASSIGN_OR_RETURN(texts.key, read_pem(files.key, str_cat(files.where, "client-key")));
  PL_ASSIGN_OR_RETURN(texts.ca, read_pem(files.ca, str_cat(files.where, "certificate-authority")));
  return texts;
}

bool belong_together(const std::string& certificate_pem, const std::string& key_pem) {
  const auto open = [](const std::string& text) {
    return std::unique_ptr<BIO, decltype(&::BIO_free)>(
        ::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &::BIO_free);
  };
  const auto no_pass_phrase = [](char*, int, int, void*) { return -1; };
  const auto certificate_bio = open(certificate_pem), key_bio = open(key_pem);
  const std::unique_ptr<X509, decltype(&::X509_free)> certificate(
      ::PEM_read_bio_X509(certificate_bio.get(), nullptr, no_pass_phrase, nullptr), &::X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&::EVP_PKEY_free)> key(
      ::PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_pass_phrase, nullptr), &::EVP_PKEY_free);
  return certificate != nullptr && key != nullptr &&
         ::X509_check_private_key(certificate.get(), key.get()) == 1;
}

class FileCredentials final : public Credentials {
 public:
  FileCredentials(std::unique_ptr<Credentials> inner, IdentityFiles files, Texts texts, const Clock& clock,
                  Logger logger)
      : inner_(std::move(inner)),
        files_(std::move(files)),
        clock_(clock),
        logger_(std::move(logger)),
        state_(State{std::move(texts), clock.now()}) {}

  absl::StatusOr<IdentityPtr> get(Deadline deadline, std::stop_token stop) override {
    PL_ASSIGN_OR_RETURN(const IdentityPtr inner, inner_->get(deadline, std::move(stop)));
    if (is_time_to_look()) look();
    auto state = state_.lock();
    if (state->identity == nullptr || state->inner->number != inner->number) {
      state->inner = inner;
      state->identity = combined(*inner, state->texts);
    }
    return state->identity;
  }

  void refused(const Identity& identity) override {
    IdentityPtr inner;
    {
      auto state = state_.lock();
      if (state->identity == nullptr || state->identity->number != identity.number) return;
      state->refused = true;
      inner = state->inner;
    }
    inner_->refused(*inner);
  }

 private:
  struct State {
    Texts texts;
    TimePoint read_at;
    bool refused = false;
    IdentityPtr inner, identity;  // both or none: the last one given out, and what it was made of
  };

  static IdentityPtr combined(const Identity& inner, const Texts& texts) {
    Identity identity = inner;
    if (identity.certificate_pem.empty()) {
      identity.certificate_pem = texts.certificate;
      identity.key_pem = texts.key;
    }
    identity.ca_pem = texts.ca;
    return numbered(std::move(identity));
  }

  // Of several threads one looks, and the others take what there is.
  bool is_time_to_look() {
    const TimePoint now = clock_.now();
    auto state = state_.lock();
    if (now - state->read_at < (state->refused ? kLeastTimeBetweenFetches : kPemFileAge)) return false;
    state->read_at = now;
    state->refused = false;
    return true;
  }

  void look() {
    absl::StatusOr<Texts> texts = read_all(files_);
    if (!texts.ok()) {
      return logger_.warning(str_cat(texts.status().message(), "; what was read before is used on"));
    }
    {
      const Texts now = state_.lock()->texts;
      if (*texts == now) return;
      const bool other_pair = texts->certificate != now.certificate || texts->key != now.key;
      if (other_pair && !belong_together(texts->certificate, texts->key)) {
        return logger_.warning(str_cat(
            files_.where, "client-key does not belong to client-certificate; those read before are used on"));
      }
    }
    logger_.info(str_cat(files_.where, "certificates were renewed"));
    auto state = state_.lock();
    state->texts = *std::move(texts);
    state->identity = nullptr;
  }

  const std::unique_ptr<Credentials> inner_;
  const IdentityFiles files_;
  const Clock& clock_;
  const Logger logger_;
  Guarded<State> state_;
};

}  // namespace

absl::StatusOr<std::string> read_pem(const PemSource& source, const std::string& where) {
  if (source.path.empty()) return source.pem;
  auto text = read_file(source.path, kMaxPemBytes);
  if (!text.ok()) return with_context(text.status(), where);
  if (text->find("-----BEGIN ") == std::string::npos) {
    return absl::InvalidArgumentError(
        str_cat(where, ": ", source.path, " is no PEM file (there is no \"-----BEGIN \" in it)"));
  }
  return text;
}

absl::StatusOr<std::unique_ptr<Credentials>> with_files(std::unique_ptr<Credentials> inner,
                                                        IdentityFiles files, const Clock& clock,
                                                        Logger logger) {
  PL_ASSIGN_OR_RETURN(Texts texts, read_all(files));
  return std::make_unique<FileCredentials>(std::move(inner), std::move(files), std::move(texts), clock,
                                           std::move(logger));
}

}  // namespace paceline::kube
