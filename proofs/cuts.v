(* Cuts: a part of the table is tried once. Either it becomes a leaf, which is shown, or it is cut into two parts, each of which is tried in turn.

   Every part has its own lots, of any type X, as the streams of the program. "act" says how the lots of a part move with a permutation of people. *)

From mathcomp Require Import all_ssreflect all_fingroup.
From proofs Require Import dealing.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Local Open Scope group_scope.

Section Cuts.

Variables (n : nat) (V : finType) (X O : Type).
Implicit Types (A B : {set 'I_n}) (r : {perm 'I_n}) (t : table n V).

(* The one try of a part: what is shown of it as a leaf, or its two sides. *)
Definition attempt := {set 'I_n} -> table n V -> X -> O + {set 'I_n} * {set 'I_n}.

Variables (try : attempt) (act : {perm 'I_n} -> X -> X).

(* The program cuts at most k times below each other; the number of people is enough. *)
Fixpoint run k A t (lots : {set 'I_n} -> X) : seq ({set 'I_n} * O) :=
  if k is k'.+1 then
    match try A t (lots A) with
    | inl shown => [:: (A, shown)]
    | inr (A1, A2) => run k' A1 t lots ++ run k' A2 t lots
    end
  else [::].

(* The cuts that were made look at sides only: whoever moves inside of the sides changes nothing, if the lots move along. *)
Definition sides_only := forall A t x r A1 A2,
  try A t x = inr (A1, A2) -> stays r A1 -> stays r A2 -> try A (moved t r) (act r x) = inr (A1, A2).

(* At each leaf, that r and the lots lead to the same leaf again; at each cut, that r moves inside of sides and the lots move along. *)
Fixpoint agree k A t (lots : {set 'I_n} -> X) r lots' : Prop :=
  if k is k'.+1 then
    match try A t (lots A) with
    | inl shown => try A (moved t r) (lots' A) = inl shown
    | inr (A1, A2) => [/\ lots' A = act r (lots A), stays r A1, stays r A2, agree k' A1 t lots r lots' & agree k' A2 t lots r lots']
    end
  else True.

(* The theorem of cuts: what leads to the same leaves inside of leaves leads to the same release. *)
Theorem run_moved k A t lots r lots' : sides_only -> agree k A t lots r lots' -> run k A (moved t r) lots' = run k A t lots.
Proof.
move=> only; elim: k A => [//|k IH] A /=.
case at_A : (try A t (lots A)) => [shown|[A1 A2]]; first by move=> ->.
by case=> -> r1 r2 /IH same1 /IH same2; rewrite (only _ _ _ _ _ _ at_A) // same1 same2.
Qed.

(* Sides are the part, cut in two. *)
Definition cuts_in_two := forall A t x A1 A2,
  try A t x = inr (A1, A2) -> [/\ A1 :|: A2 = A, [disjoint A1 & A2], A1 != set0 & A2 != set0].

Lemma less_people A t x A1 A2 : cuts_in_two -> try A t x = inr (A1, A2) -> #|A1| < #|A| /\ #|A2| < #|A|.
Proof.
move=> two /two[<- dis some1 some2]; rewrite cardsU disjoint_setI0 // cards0 subn0.
by rewrite -[X in X < _]addn0 -[X in _ /\ X < _]add0n ltn_add2l ltn_add2r !card_gt0.
Qed.

Definition leaves k A t lots := [seq l.1 | l <- run k A t lots].

Lemma leaves_in k A t lots leaf : cuts_in_two -> leaf \in leaves k A t lots -> leaf \subset A.
Proof.
rewrite /leaves => two; elim: k A => [//|k IH] A /=.
case at_A : (try A t (lots A)) => [shown|[A1 A2]]; first by rewrite inE => /eqP ->.
have [<- _ _ _] := two _ _ _ _ _ at_A.
by rewrite map_cat mem_cat => /orP[] /IH /subset_trans -> //; rewrite ?subsetUl ?subsetUr.
Qed.

(* First form: r keeps what every leaf shows, and all lots move along with it. *)
Section Everywhere.

Variable keeps : {perm 'I_n} -> O -> bool.

Definition leaf_kept := forall A t x r shown,
  try A t x = inl shown -> keeps r shown -> stays r A /\ try A (moved t r) (act r x) = inl shown.

Theorem run_kept k A t lots r : cuts_in_two -> sides_only -> leaf_kept -> #|A| <= k ->
  all (fun l => keeps r l.2) (run k A t lots) ->
  run k A (moved t r) (fun B => act r (lots B)) = run k A t lots /\ stays r A.
Proof.
move=> two only kept; elim: k A => [|k IH] A /=.
  by rewrite leqn0 cards_eq0 => /eqP -> _; rewrite /stays imset0.
move=> small; case at_A : (try A t (lots A)) => [shown|[A1 A2]].
  by rewrite /= andbT => /(kept _ _ _ _ _ at_A)[rA ->].
have [<- _ _ _] := two _ _ _ _ _ at_A; have [less1 less2] := less_people two at_A.
rewrite all_cat => /andP[/IH[|same1 r1]]; first by rewrite -ltnS (leq_trans less1).
case/IH => [|same2 r2]; first by rewrite -ltnS (leq_trans less2).
have [whole _ _ _] := two _ _ _ _ _ at_A.
rewrite whole (only _ _ _ _ _ _ at_A) // same1 same2; split=> //.
by rewrite -whole /stays imsetU (eqP r1) (eqP r2).
Qed.

End Everywhere.

(* Second form: r moves people of one leaf only. The lots of this leaf become others; those of all other parts move along. *)
Section OneLeaf.

Variables (A0 : {set 'I_n}) (t : table n V) (lots : {set 'I_n} -> X) (r : {perm 'I_n}) (x' : X) (shown0 : O).

Definition elsewhere_still := forall A t x r, still r A -> try A (moved t r) (act r x) = try A t x.

Hypothesis two : cuts_in_two.
Hypothesis only : sides_only.
Hypothesis elsewhere : elsewhere_still.
Hypothesis some : A0 != set0.
Hypothesis inside : stays r A0.
Hypothesis outside : forall x, x \notin A0 -> r x = x.
Hypothesis same_leaf : forall shown, try A0 t (lots A0) = inl shown -> try A0 (moved t r) x' = inl shown.

Definition other_lots B := if B == A0 then x' else act r (lots B).

Lemma still_elsewhere B : [disjoint A0 & B] -> still r B.
Proof. by move=> dis x xB; apply: outside; apply/negP=> xA; move: dis => /pred0P /(_ x) /=; rewrite xA xB. Qed.

Lemma stays_around B : A0 \subset B -> stays r B.
Proof.
move=> sub; apply: stays_if => x xB; have [xA|/outside -> //] := boolP (x \in A0).
by apply: (subsetP sub); rewrite (staysP inside).
Qed.

Lemma run_elsewhere k B : [disjoint A0 & B] -> run k B (moved t r) other_lots = run k B t lots.
Proof.
elim: k B => [//|k IH] B dis /=.
have -> : other_lots B = act r (lots B).
  rewrite /other_lots; case: eqP => // same; move: some; rewrite -same in dis *.
  by move: dis; rewrite -setI_eq0 setIid same => ->.
rewrite elsewhere; last exact: still_elsewhere.
case at_B : (try B t (lots B)) => [shown|[B1 B2]] //.
have [whole _ _ _] := two at_B.
by rewrite !IH //; apply: disjointWr dis; rewrite -whole ?subsetUl ?subsetUr.
Qed.

Theorem run_leaf k B : A0 \in leaves k B t lots -> run k B (moved t r) other_lots = run k B t lots.
Proof.
rewrite /leaves; elim: k B => [//|k IH] B /=.
case at_B : (try B t (lots B)) => [shown|[B1 B2]] /=.
  by rewrite inE => /eqP same; rewrite -same in at_B *; rewrite /other_lots eqxx (same_leaf at_B).
have [whole dis _ _] := two at_B.
rewrite map_cat mem_cat => A0in.
have sub : A0 \subset B1 \/ A0 \subset B2 by case/orP: A0in => /(leaves_in two); [left | right].
have not_whole : (B == A0) = false.
  apply/negP=> /eqP same; have [less1 less2] := less_people two at_B.
  by case: sub => /subset_leq_card; rewrite leqNgt -same ?less1 ?less2.
have r1 : stays r B1.
  case: sub => [/stays_around //|sub2]; apply: still_stays; apply: still_elsewhere.
  by rewrite disjoint_sym; apply: disjointWr sub2 dis.
have r2 : stays r B2.
  case: sub => [sub1|/stays_around //]; apply: still_stays; apply: still_elsewhere.
  by apply: disjointWl sub1 dis.
rewrite {1}/other_lots not_whole (only at_B) //.
case/orP: A0in => A0in; rewrite (IH _ A0in) run_elsewhere //; have sub' := leaves_in two A0in.
  exact: disjointWl sub' dis.
by rewrite disjoint_sym; apply: disjointWr sub' dis.
Qed.

End OneLeaf.

End Cuts.
