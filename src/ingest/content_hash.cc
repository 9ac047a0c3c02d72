#include "ingest/content_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <new>

namespace unflake {
namespace {

EVP_MD_CTX* digest(void* context) {
  return static_cast<EVP_MD_CTX*>(context);
}

}  // namespace

void ContentHash::Free::operator()(void* context) const {
  EVP_MD_CTX_free(digest(context));
}

ContentHash::ContentHash() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(digest(context_.get()), EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
}

void ContentHash::add(std::string_view bytes) {
  EVP_DigestUpdate(digest(context_.get()), bytes.data(), bytes.size());
}

void ContentHash::add_field(std::string_view text) {
  add(fmt::format("{}:", text.size()));
  add(text);
}

std::string ContentHash::hex() && {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_DigestFinal_ex(digest(context_.get()), bytes, &size);
  std::string hex;
  for (unsigned i = 0; i < size; ++i) hex += fmt::format("{:02x}", bytes[i]);
  return hex;
}

}  // namespace unflake
