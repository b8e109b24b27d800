(* Cyclic orders of rings, and shifts along them.

   A lot c orders all people. The people of a ring stand in this order, in a circle. *)

From mathcomp Require Import all_ssreflect all_fingroup.
From proofs Require Import dealing.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope group_scope.

Section Turns.

Variable n : nat.
Implicit Types (B : {set 'I_n}) (c r : {perm 'I_n}) (x y : 'I_n).

Lemma rank_onto B c k : k < #|B| -> exists2 y, y \in B & rank B c y = k.
Proof.
move=> less; pose f y : 'I_#|B|.+1 := inord (rank B c y).
have fE y : y \in B -> f y = rank B c y :> nat.
  by move=> yB; rewrite inordK // ltnS ltnW // rank_ltn.
have inj : {in B &, injective f}.
  by move=> y z yB zB /(congr1 val) /=; rewrite !fE //; apply: rank_inj.
have sub : f @: B \subset [set i : 'I_#|B|.+1 | i < #|B|].
  by apply/subsetP=> _ /imsetP[y yB ->]; rewrite inE fE // rank_ltn.
have : f @: B == [set i : 'I_#|B|.+1 | i < #|B|].
  rewrite eqEcard sub card_in_imset //.
  have -> : [set i : 'I_#|B|.+1 | i < #|B|] = [set~ ord_max].
    apply/setP=> i; rewrite !inE -val_eqE /= ltn_neqAle -ltnS ltn_ord andbT //.
  by rewrite /= cardsC1 card_ord leqnn.
move/eqP/setP/(_ (inord k)); rewrite inE inordK ?ltnS ?(ltnW less) // less => /imsetP[y yB /(congr1 val)] /=.
by rewrite -/(f y) inordK ?ltnS ?(ltnW less) // fE // => ->; exists y.
Qed.

(* The person d places on. *)
Definition ahead B c (d : nat) x : 'I_n := odflt x [pick y in B | rank B c y == (rank B c x + d) %% #|B|].

Lemma aheadP B c d x : x \in B -> ahead B c d x \in B /\ rank B c (ahead B c d x) = (rank B c x + d) %% #|B|.
Proof.
move=> xB; rewrite /ahead; case: pickP => [y /andP[yB /eqP same]|none] //=.
have some : 0 < #|B| by rewrite card_gt0; apply/set0Pn; exists x.
have [y yB same] := rank_onto c (ltn_pmod (rank B c x + d) some).
by have := none y; rewrite /= yB same eqxx.
Qed.

Lemma ahead_in B c d x : x \in B -> ahead B c d x \in B.
Proof. by case/(aheadP c d). Qed.

Lemma ahead_unique B c d x y : x \in B -> y \in B -> rank B c y = (rank B c x + d) %% #|B| -> ahead B c d x = y.
Proof. by move=> xB yB same; have [inB is_rank] := aheadP c d xB; apply: (@rank_inj _ B c) => //; rewrite is_rank same. Qed.

Lemma ahead_ahead B c d e x : x \in B -> ahead B c d (ahead B c e x) = ahead B c (e + d) x.
Proof.
move=> xB; apply/esym/ahead_unique; rewrite ?ahead_in //.
have [inB ->] := aheadP c d (ahead_in c e xB); have [_ ->] := aheadP c e xB.
by rewrite modnDml addnA.
Qed.

Lemma ahead_mod B c d x : x \in B -> ahead B c (d %% #|B|) x = ahead B c d x.
Proof. by move=> xB; apply: ahead_unique; rewrite ?ahead_in //; have [_ ->] := aheadP c d xB; rewrite modnDmr. Qed.

Lemma ahead0 B c x : x \in B -> ahead B c 0 x = x.
Proof. by move=> xB; apply: ahead_unique; rewrite // addn0 modn_small // rank_ltn. Qed.

Lemma ahead_all B c x : x \in B -> ahead B c #|B| x = x.
Proof. by move=> xB; rewrite -ahead_mod // modnn ahead0. Qed.

Lemma ahead_inj_place B c x d e : x \in B -> d < #|B| -> e < #|B| -> ahead B c d x = ahead B c e x -> d = e.
Proof.
move=> xB dB eB same; have [_ rd] := aheadP c d xB; have [_] := aheadP c e xB.
rewrite -same rd => /eqP; rewrite eqn_modDl !modn_small // => /eqP //.
Qed.

Lemma ahead_inj B c d : {in B &, injective (ahead B c d)}.
Proof.
move=> x y xB yB same; apply: (@rank_inj _ B c) => //.
have [_ rx] := aheadP c d xB; have [_ ry] := aheadP c d yB.
have : rank B c x + d == rank B c y + d %[mod #|B|] by rewrite -rx -ry same.
by rewrite eqn_modDr !modn_small ?rank_ltn // => /eqP.
Qed.

(* The circle moves along with people. *)
Lemma ahead_moved B B' c r d x : (forall y, (y \in B') = (r y \in B)) -> x \in B' ->
  r (ahead B' (r * c) d x) = ahead B c d (r x).
Proof.
move=> along xB; have rxB : r x \in B by rewrite -along.
have size : #|B'| = #|B|.
  rewrite -(card_imset _ (@perm_inj _ r)); congr #|pred_of_set _|; apply/setP=> y.
  apply/imsetP/idP => [[z + ->]|yB]; first by rewrite along.
  by exists (r^-1 y); rewrite ?along permKV.
have [inB is_rank] := aheadP (r * c) d xB.
apply/esym/ahead_unique; rewrite -?along //.
by rewrite -!(rank_moved c _ along) is_rank size.
Qed.

End Turns.
