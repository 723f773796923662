// Package index finds the notes of a person: Markdown files in the workspace of an agent.
//
// The index is a file that may be deleted at any time, because it contains nothing that is
// not in the notes. A search compares it with the notes first, at most once a second, and
// reads those that were changed.
//
// A note is split into chunks at its headings; long sections are split into parts that
// overlap. The terms of a chunk are the stems of its words; irregular forms have that of
// their base, and some symbols that of a word. A run of Chinese characters
// has a term for each character and each pair of neighbours, so that words are found
// without a dictionary.
//
// A question is taken apart into cells: its words, and its Chinese characters. Words that
// occur in any question are left out; common verbs and adverbs count half. A word is also
// found in a longer or shorter form, and by everyday synonyms in English and Chinese.
// The score of a chunk is the share of the question
// that it contains, where rare words count more than common ones and a word that no note
// contains counts most; and it is lower when what the chunk contains weighs less than a
// few rare words. Therefore a question that no note answers usually finds nothing,
// although some of its words occur.
//
// With embedders, chunks also have vectors, which are made in the background.
// Then the score is the weighted mean of the similarity of the vectors and of the words,
// but not less than that of the words alone. The vectors are in the file, as bytes. A
// search reads their signs, and compares those vectors whose signs are most similar.
//
// The file contains the vectors of one model. They are found by the hash of their text,
// so that a note that was moved needs no new ones.
package index
