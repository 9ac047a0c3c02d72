#include "trace/process_text.h"

#include "util/text.h"

namespace unflake {
namespace {

void add_pieces(const CapturedOutput& output, std::vector<TextPiece>& pieces) {
  const bool complete = output.total <= output.head.size() + output.tail.size();
  if (complete) {
    if (!output.head.empty() || !output.tail.empty())
      pieces.push_back({output.head + output.tail, false, false});
    return;
  }
  pieces.push_back({output.head, false, true});
  pieces.push_back({output.tail, true, false});
}

}  // namespace

std::vector<TextPiece> pieces_of(const ProcessResult& process) {
  std::vector<TextPiece> pieces;
  add_pieces(process.output, pieces);
  add_pieces(process.errors, pieces);
  return pieces;
}

std::string readable_lines(const TextPiece& piece) {
  std::string_view text = piece.text;
  if (piece.cut_at_end) text = text.substr(0, text.find_last_of('\n') + 1);
  if (piece.cut_at_start) {
    const size_t first_end = text.find('\n');
    text.remove_prefix(first_end == std::string_view::npos ? text.size() : first_end + 1);
  }
  return without_escape_sequences(text);
}

}  // namespace unflake
